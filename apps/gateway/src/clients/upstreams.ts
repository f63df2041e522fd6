import type { Client } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { factories, metrics, orchestrator, scheduler, scoring, webhooks } from "@millwright/contracts";
import { call, clientFor, type CallerSigner, type CallSettings } from "@millwright/rpc";
import type { GatewayOptions } from "../options.ts";
import type { RequestInfo } from "../rest/index.ts";

/** Generated clients of the services behind the public API. */
export type Upstreams = {
  readonly runs: Client<typeof orchestrator.RunService>;
  readonly runEvents: Client<typeof orchestrator.RunEventService>;
  readonly localRuns: Client<typeof orchestrator.LocalRunService>;
  readonly leases: Client<typeof orchestrator.LeaseService>;
  readonly conversations: Client<typeof orchestrator.ConversationService>;
  readonly artifacts: Client<typeof orchestrator.ArtifactService>;
  readonly catalog: Client<typeof orchestrator.CatalogService>;
  readonly budgets: Client<typeof orchestrator.BudgetService>;
  readonly modelPrices: Client<typeof orchestrator.ModelPriceService>;
  readonly factories: Client<typeof factories.FactoryService>;
  readonly branches: Client<typeof factories.BranchService>;
  readonly tasks: Client<typeof factories.TaskService>;
  readonly automations: Client<typeof factories.AutomationService>;
  readonly schedules: Client<typeof scheduler.ScheduleService>;
  readonly scorers: Client<typeof scoring.ScorerService>;
  readonly benchmarks: Client<typeof scoring.BenchmarkService>;
  readonly metrics: Client<typeof metrics.MetricsService>;
  readonly prices: Client<typeof metrics.PriceService>;
  readonly webhooks: Client<typeof webhooks.WebhookService>;
  readonly codeHostWebhooks: Client<typeof webhooks.CodeHostWebhookService>;
};

export function connectUpstreams(transports: GatewayOptions["upstreams"], signer: CallerSigner): Upstreams {
  return {
    runs: clientFor(orchestrator.RunService, transports.orchestrator, { signer }),
    runEvents: clientFor(orchestrator.RunEventService, transports.orchestrator, { signer }),
    localRuns: clientFor(orchestrator.LocalRunService, transports.orchestrator, { signer }),
    leases: clientFor(orchestrator.LeaseService, transports.orchestrator, { signer }),
    conversations: clientFor(orchestrator.ConversationService, transports.orchestrator, { signer }),
    artifacts: clientFor(orchestrator.ArtifactService, transports.orchestrator, { signer }),
    catalog: clientFor(orchestrator.CatalogService, transports.orchestrator, { signer }),
    budgets: clientFor(orchestrator.BudgetService, transports.orchestrator, { signer }),
    modelPrices: clientFor(orchestrator.ModelPriceService, transports.orchestrator, { signer }),
    factories: clientFor(factories.FactoryService, transports.factories, { signer }),
    branches: clientFor(factories.BranchService, transports.factories, { signer }),
    tasks: clientFor(factories.TaskService, transports.factories, { signer }),
    automations: clientFor(factories.AutomationService, transports.factories, { signer }),
    schedules: clientFor(scheduler.ScheduleService, transports.scheduler, { signer }),
    scorers: clientFor(scoring.ScorerService, transports.scoring, { signer }),
    benchmarks: clientFor(scoring.BenchmarkService, transports.scoring, { signer }),
    metrics: clientFor(metrics.MetricsService, transports.metrics, { signer }),
    prices: clientFor(metrics.PriceService, transports.metrics, { signer }),
    webhooks: clientFor(webhooks.WebhookService, transports.webhookIngress, { signer }),
    codeHostWebhooks: clientFor(webhooks.CodeHostWebhookService, transports.webhookIngress, { signer }),
  };
}

/** Returns call options of a request: on behalf of its caller, cancelled when the client disconnects. */
export const onBehalf = (
  input: { caller: Caller; request: RequestInfo },
  settings: Omit<CallSettings, "signal"> = {},
) => call(input.caller, { ...settings, signal: input.request.signal });
