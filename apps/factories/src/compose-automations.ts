import type { Transport } from "@connectrpc/connect";
import { BackgroundLoop, type Database } from "@millwright/database";
import { Consumer, type EventLog } from "@millwright/events";
import { upstreamFeed, type ServiceOptions } from "@millwright/service";
import type { WorkHandler } from "@millwright/work";
import type { orchestratorClient } from "./clients/orchestrator-client.ts";
import { webhooksClient } from "./clients/webhooks-client.ts";
import { DECIDE, DECIDE_DELAYED, START, type DecisionRef, type DelayedRef } from "./domain/decision.ts";
import type { TriggerEvent } from "./domain/trigger-event.ts";
import { onDeliveryEvents } from "./events/on-delivery-events.ts";
import { onMemberEvents } from "./events/on-member-events.ts";
import { onScheduleEvents } from "./events/on-schedule-events.ts";
import { onStageChanges } from "./events/on-stage-changes.ts";
import type { RoutesDeps } from "./rpc/routes.ts";
import type { AutomationStore } from "./store/automation-store.ts";
import { decisionStore } from "./store/decision-store.ts";
import type { ResponseStore } from "./store/idempotency.ts";
import { decideDelayed } from "./usecases/decide-delayed.ts";
import { decideEvent, type DecideEventDeps, type Evaluators } from "./usecases/decide-event.ts";
import type { FindBoundTasksDeps } from "./usecases/find-bound-tasks.ts";
import { evaluateCodeHostDelivery } from "./usecases/evaluate-code-host-delivery.ts";
import { evaluateDelivery } from "./usecases/evaluate-delivery.ts";
import { evaluateSlot } from "./usecases/evaluate-slot.ts";
import { evaluateStageChange, type EvaluateStageChangeDeps } from "./usecases/evaluate-stage-change.ts";
import type { ReplayDeliveryDeps } from "./usecases/replay-delivery.ts";
import { startDecidedRun, type StartDecidedRunDeps } from "./usecases/start-decided-run.ts";

export type AutomationsOptions = Pick<
  ServiceOptions,
  "publicUrl" | "signer" | "clock" | "log" | "tracer" | "wakeups"
> & {
  database: Database;
  deps: RoutesDeps & {
    automations: AutomationStore;
    responses: ResponseStore;
    applies: StartDecidedRunDeps["applies"];
    tasks: EvaluateStageChangeDeps["tasks"] & FindBoundTasksDeps["tasks"];
  };
  runs: ReturnType<typeof orchestratorClient>;
  agents: StartDecidedRunDeps["agents"];
  upstreams: { identity: Transport; webhookIngress: Transport; scheduler: Transport };
  /** Of this service. */
  eventLog: EventLog;
};

/** Deliveries for which this process queries code hosts concurrently. */
const CODE_HOST_QUERIES_MAX = 4;
const PRUNE_EVERY_MS = 3_600_000;

/** Adds automations to the object graph: the events they consume, their decisions, and their work. */
export function composeAutomations(o: AutomationsOptions) {
  const { database, clock, log, signer } = o;
  const decisions = decisionStore(database);
  const deliveries = webhooksClient(o.upstreams.webhookIngress, signer);
  const evaluatorsWith: ReplayDeliveryDeps["evaluatorsWith"] = (known = {}, queriesCodeHost = true) => {
    const from = { ...deliveries, ...known };
    const fromCodeHost: Evaluators[string] = (event, automations) =>
      evaluateCodeHostDelivery(
        {
          deliveries: from,
          factories: o.deps.factories,
          tasks: o.deps.tasks,
          runs: o.runs,
          agents: o.agents,
          builds: decisions,
          codeHosts: o.runs,
          service: signer.service,
        },
        event,
        automations,
        { queriesCodeHost },
      );
    return {
      webhook: (event) => evaluateDelivery({ deliveries: from }, event),
      factory: (event) => evaluateStageChange({ tasks: o.deps.tasks, runs: o.runs }, event),
      schedule: evaluateSlot,
      github: fromCodeHost,
      gitlab: fromCodeHost,
    };
  };
  const { automations } = o.deps;
  const deciding: DecideEventDeps = { evaluators: evaluatorsWith({}, false), automations, decisions, clock };
  const starting: StartDecidedRunDeps = {
    decisions,
    deliveries,
    factories: o.deps.factories,
    automations,
    applies: o.deps.applies,
    agents: o.agents,
    runs: o.runs,
    publicUrl: o.publicUrl,
    service: signer.service,
  };
  const consuming = { name: "automations", database, clock, log, tracer: o.tracer, wakeups: o.wakeups };
  const prune = () => decisions.prune(clock.now());
  return {
    deps: {
      ...o.deps,
      decisions,
      deliveries,
      evaluatorsWith,
      start: (ref: DecisionRef) => startDecidedRun(starting, ref),
    },
    consumers: [
      new Consumer({
        ...consuming,
        source: "webhook-ingress",
        read: upstreamFeed(o.upstreams.webhookIngress, signer),
        ...onDeliveryEvents(),
      }),
      new Consumer({
        ...consuming,
        source: "gateway",
        read: upstreamFeed(o.upstreams.identity, signer),
        handlers: onMemberEvents(clock),
      }),
      new Consumer({
        ...consuming,
        source: "scheduler",
        read: upstreamFeed(o.upstreams.scheduler, signer),
        handlers: {},
        batchHandlers: onScheduleEvents(),
      }),
      new Consumer({
        ...consuming,
        source: "factories",
        read: (range) => o.eventLog.read(range),
        handlers: {},
        batchHandlers: onStageChanges(),
      }),
    ],
    work: {
      [DECIDE]: ({ payload }, context) => decideEvent(deciding, payload as TriggerEvent, (tx) => context.finish(tx)),
      [DECIDE_DELAYED]: ({ payload }, context) =>
        decideDelayed({ ...deciding, decisions, evaluators: evaluatorsWith() }, payload as DelayedRef, (tx) =>
          context.finish(tx),
        ),
      [START]: ({ payload }) => startDecidedRun(starting, payload as DecisionRef),
    } satisfies Record<string, WorkHandler>,
    /** Kinds of work that call code hosts, and how many items of each run concurrently. */
    separateWork: { [DECIDE_DELAYED]: CODE_HOST_QUERIES_MAX },
    pruner: new BackgroundLoop({
      everyMs: PRUNE_EVERY_MS,
      step: () => prune().then(() => "idle" as const),
      onError: (error) => log.warn({ component: "decision pruner", error }, "deleting old decisions failed; retrying"),
    }),
    prune,
  };
}
