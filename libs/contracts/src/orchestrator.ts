export * from "./gen/millwright/orchestrator/v1/artifact_pb.ts";
export * from "./gen/millwright/orchestrator/v1/budget_pb.ts";
export * from "./gen/millwright/orchestrator/v1/catalog_pb.ts";
export * from "./gen/millwright/orchestrator/v1/run_pb.ts";
export * from "./gen/millwright/orchestrator/v1/evidence_pb.ts";
export * from "./gen/millwright/orchestrator/v1/facts_pb.ts";
export * from "./gen/millwright/orchestrator/v1/model_price_pb.ts";
