import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { events } from "@millwright/contracts";
import { BackgroundLoop, type Database, type Sql } from "@millwright/database";
import {
  Consumer,
  feedReader,
  type ConsumerDeps,
  type WakeupBus,
  type EventLog,
  type FeedReader,
} from "@millwright/events";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { Logger, Tracer } from "@millwright/telemetry";
import type { WorkHandler } from "@millwright/work";
import type { orchestratorClient } from "./clients/orchestrator-client.ts";
import { webhooksClient } from "./clients/webhooks-client.ts";
import { DECIDE, DECIDE_DELAYED, START, type DecisionRef, type DelayedRef } from "./domain/decision.ts";
import type { TriggerEvent } from "./domain/trigger-event.ts";
import { onDeliveryEvents } from "./events/on-delivery-events.ts";
import { onMemberEvents } from "./events/on-member-events.ts";
import { onScheduleEvents } from "./events/on-schedule-events.ts";
import { onStageChanges } from "./events/on-stage-changes.ts";
import type { AutomationRoutesDeps } from "./rpc/automation-routes.ts";
import type { RoutesDeps } from "./rpc/routes.ts";
import {
  listeningAmong,
  listeningFactories,
  listeningTo,
  updateAutomationsOfMember,
  type AutomationStore,
} from "./store/automation-store.ts";
import { decisionStore, enqueueDecisions } from "./store/decision-store.ts";
import { decideDelayed } from "./usecases/decide-delayed.ts";
import { decideEvent, type DecideEventDeps, type Evaluators } from "./usecases/decide-event.ts";
import type { FindBoundTasksDeps } from "./usecases/find-bound-tasks.ts";
import { evaluateCodeHostDelivery } from "./usecases/evaluate-code-host-delivery.ts";
import { evaluateDelivery } from "./usecases/evaluate-delivery.ts";
import { evaluateSlot } from "./usecases/evaluate-slot.ts";
import { evaluateStageChange, type EvaluateStageChangeDeps } from "./usecases/evaluate-stage-change.ts";
import type { ReplayDeliveryDeps } from "./usecases/replay-delivery.ts";
import { startDecidedRun, type StartDecidedRunDeps } from "./usecases/start-decided-run.ts";

export type AutomationsOptions = {
  database: Database;
  deps: RoutesDeps & {
    automations: AutomationStore;
    applies: StartDecidedRunDeps["applies"];
    tasks: EvaluateStageChangeDeps["tasks"] & FindBoundTasksDeps["tasks"];
  };
  runs: ReturnType<typeof orchestratorClient>;
  agents: StartDecidedRunDeps["agents"];
  upstreams: { identity: Transport; webhookIngress: Transport; scheduler: Transport };
  /** Of this service. */
  eventLog: EventLog;
  publicUrl: string;
  signer: CallerSigner;
  clock: Clock;
  log: Logger;
  tracer?: Tracer;
  wakeups?: WakeupBus;
};

export type Automations = {
  readonly deps: AutomationRoutesDeps;
  readonly consumers: readonly Consumer[];
  readonly work: Readonly<Record<string, WorkHandler>>;
  /** Kinds of work that call code hosts, and how many items of each run concurrently. */
  readonly separateWork: Readonly<Record<string, number>>;
  readonly pruner: BackgroundLoop;
  prune(): Promise<number>;
};

/** Deliveries for which this process queries code hosts concurrently. */
const CODE_HOSTS_ASKED_MAX = 4;
const PRUNE_EVERY_MS = 3_600_000;

/** Adds automations to the object graph: the events they consume, their decisions, and their work. */
export function composeAutomations(o: AutomationsOptions): Automations {
  const { database, clock, log, signer } = o;
  const decisions = decisionStore(database);
  const deliveries = webhooksClient(o.upstreams.webhookIngress, signer);
  const evaluatorsWith: ReplayDeliveryDeps["evaluatorsWith"] = (known = {}, asks = true) => {
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
        { asks },
      );
    return {
      webhook: (event) => evaluateDelivery({ deliveries: from }, event),
      factory: (event) => evaluateStageChange({ tasks: o.deps.tasks, runs: o.runs }, event),
      schedule: evaluateSlot,
      github: fromCodeHost,
      gitlab: fromCodeHost,
    };
  };
  const listeners = {
    listeningTo: (factoryUid: string, provider: string) => listeningTo(database.sql, factoryUid, provider),
  };
  const deciding: DecideEventDeps<Sql> = {
    evaluators: evaluatorsWith({}, false),
    automations: listeners,
    decisions,
    clock,
  };
  const starting: StartDecidedRunDeps = {
    decisions,
    deliveries,
    factories: o.deps.factories,
    automations: o.deps.automations,
    applies: o.deps.applies,
    agents: o.agents,
    runs: o.runs,
    publicUrl: o.publicUrl,
    service: signer.service,
  };
  const follow = (source: string, read: FeedReader, react: Partial<Pick<ConsumerDeps, "handlers" | "batchHandlers">>) =>
    new Consumer({
      name: "automations",
      source,
      database,
      clock,
      log,
      tracer: o.tracer,
      handlers: {},
      ...react,
      read,
      wakeups: o.wakeups,
    });
  const feedOf = (transport: Transport) =>
    feedReader(clientFor(events.EventFeedService, transport, { signer }), () =>
      call(serviceCaller(signer.service, newUid())),
    );
  const enqueueing = { listeningAmong, listeningFactories, enqueueDecisions };
  const prune = () => decisions.prune(clock.now());
  return {
    deps: { ...o.deps, decisions, deliveries, evaluatorsWith, start: (ref) => startDecidedRun(starting, ref) },
    consumers: [
      follow("webhook-ingress", feedOf(o.upstreams.webhookIngress), onDeliveryEvents(enqueueing)),
      follow("gateway", feedOf(o.upstreams.identity), {
        handlers: onMemberEvents({ updateAutomationsOfMember, clock }),
      }),
      follow("scheduler", feedOf(o.upstreams.scheduler), { batchHandlers: onScheduleEvents(enqueueing) }),
      follow("factories", (range) => o.eventLog.read(range), { batchHandlers: onStageChanges(enqueueing) }), // its own log
    ],
    work: {
      [DECIDE]: ({ payload }, context) => decideEvent(deciding, payload as TriggerEvent, (tx) => context.finish(tx)),
      [DECIDE_DELAYED]: ({ payload }, context) =>
        decideDelayed(
          { evaluators: evaluatorsWith(), automations: listeners, decisions, clock },
          payload as DelayedRef,
          (tx) => context.finish(tx),
        ),
      [START]: ({ payload }) => startDecidedRun(starting, payload as DecisionRef),
    },
    separateWork: { [DECIDE_DELAYED]: CODE_HOSTS_ASKED_MAX },
    pruner: new BackgroundLoop({
      everyMs: PRUNE_EVERY_MS,
      step: () => prune().then(() => "idle" as const),
      onError: (error) => log.warn({ component: "decision pruner", error }, "deleting old decisions failed; retrying"),
    }),
    prune,
  };
}
