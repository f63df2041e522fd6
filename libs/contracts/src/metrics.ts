export * from "./gen/millwright/metrics/v1/metrics_pb.ts";
export * from "./gen/millwright/metrics/v1/prices_pb.ts";
