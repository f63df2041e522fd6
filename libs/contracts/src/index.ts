/**
 * The generated contracts, one namespace per package of `proto/`. Only these exports and
 * `model-secrets.ts` are written by hand.
 */
export * as definitions from "./gen/millwright/definitions/v1/definition_owner_pb.ts";
export * as events from "./gen/millwright/events/v1/event_feed_pb.ts";
export * as factories from "./factories.ts";
export * as health from "./gen/grpc/health/v1/health_pb.ts";
export * as identity from "./gen/millwright/identity/v1/identity_pb.ts";
export * as metrics from "./metrics.ts";
export { MODEL_SECRETS } from "./model-secrets.ts";
export * as orchestrator from "./orchestrator.ts";
export * as rpc from "./gen/millwright/rpc/v1/error_detail_pb.ts";
export * as scheduler from "./gen/millwright/scheduler/v1/schedule_pb.ts";
export * as scoring from "./scoring.ts";
export * as worker from "./gen/millwright/worker/v1/worker_pb.ts";
export * as webhooks from "./webhooks.ts";
