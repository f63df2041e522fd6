export * from "./gen/millwright/webhooks/v1/code_host_webhook_pb.ts";
export * from "./gen/millwright/webhooks/v1/webhook_pb.ts";
