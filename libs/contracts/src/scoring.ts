/** The contracts of the scoring service: scorers and benchmarks. */
export * from "./gen/millwright/scoring/v1/benchmark_pb.ts";
export * from "./gen/millwright/scoring/v1/scorer_pb.ts";
