export * from "./gen/millwright/factories/v1/branch_pb.ts";
export * from "./gen/millwright/factories/v1/factory_pb.ts";
export * from "./gen/millwright/factories/v1/task_pb.ts";
export * from "./gen/millwright/factories/v1/automation_pb.ts";
