import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import { route, timestamp, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { omitUndefined } from "@millwright/json";
import { isoTime } from "../formats/json-values.ts";

const Cost = z
  .object({
    currency: z.literal("USD"),
    input_per_million_tokens: z.number(),
    output_per_million_tokens: z.number(),
    input_cache_read_per_million_tokens: z.number().optional(),
    input_cache_write_per_million_tokens: z.number().optional(),
  })
  .meta({ id: "ModelCost" });

/** A model. `disabled_message` is a Millwright extension. */
const Model = z
  .object({
    id: z.string(),
    display_name: z.string(),
    provider: z.enum(["OPENAI", "ANTHROPIC", "GOOGLE", "UNKNOWN"]),
    vision_supported: z.boolean(),
    description: z.string().optional(),
    reasoning_level: z.string().optional(),
    disable_reason: z.enum(["PROVIDER_OUTAGE", "OUT_OF_REQUESTS", "ADMIN_DISABLED", "REQUIRES_UPGRADE"]).optional(),
    disabled: z.boolean(),
    disabled_message: z.string().optional(),
    cost: Cost.nullable(),
  })
  .meta({ id: "Model" });

/** A connected worker. `sandbox` and `sandbox_features` are Millwright extensions. */
const Worker = z
  .object({
    worker_host: z.string(),
    connection_count: z.int(),
    connected_at: timestamp(),
    last_seen_at: timestamp(),
    sandbox: z.string(),
    sandbox_features: z.array(z.string()),
  })
  .meta({ id: "ConnectedSelfHostedWorker" });

/** Returns the routes that list models and connected workers. */
export function modelAndWorkerRoutes({ catalog }: Pick<Upstreams, "catalog">): Route[] {
  return [
    route({
      method: "GET",
      path: "/agent/models",
      summary: "List models",
      response: z.object({ default_model_id: z.string(), models: z.array(Model) }),
      handler: async (input) => {
        const { defaultModelId, models } = await catalog.listModels(
          { teamUid: input.caller.activeTeamUid ?? "" },
          onBehalf(input),
        );
        return { default_model_id: defaultModelId, models: models.map(modelRecord) };
      },
    }),
    route({
      method: "GET",
      path: "/agent/connected-self-hosted-workers",
      summary: "List the team's connected workers",
      verbs: ["run.view"],
      teamHeader: true,
      response: z.object({ workers: z.array(Worker) }),
      handler: async (input) => {
        const { workers } = await catalog.listWorkers({ teamUid: input.caller.activeTeamUid ?? "" }, onBehalf(input));
        return {
          workers: workers.map((worker) => ({
            worker_host: worker.workerHost,
            connection_count: worker.connectionCount,
            connected_at: isoTime(worker.connectedAt!),
            last_seen_at: isoTime(worker.lastSeenAt!),
            sandbox: worker.sandbox,
            sandbox_features: worker.sandboxFeatures,
          })),
        };
      },
    }),
  ];
}

const modelRecord = (model: orchestrator.Model): z.input<typeof Model> => ({
  id: model.id,
  display_name: model.displayName,
  provider: model.provider as "UNKNOWN",
  vision_supported: model.visionSupported,
  disabled: model.disabled,
  cost: model.cost ? costRecord(model.cost) : null,
  ...omitUndefined({
    description: model.description,
    reasoning_level: model.reasoningLevel,
    disable_reason: model.disableReason as "ADMIN_DISABLED" | undefined,
    disabled_message: model.disabledMessage,
  }),
});

const costRecord = (cost: orchestrator.ModelCost): z.input<typeof Cost> => ({
  currency: "USD",
  input_per_million_tokens: cost.inputPerMillionTokens,
  output_per_million_tokens: cost.outputPerMillionTokens,
  ...omitUndefined({
    input_cache_read_per_million_tokens: cost.inputCacheReadPerMillionTokens,
    input_cache_write_per_million_tokens: cost.inputCacheWritePerMillionTokens,
  }),
});
