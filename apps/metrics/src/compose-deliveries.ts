import type { Transport } from "@connectrpc/connect";
import type { Database } from "@millwright/database";
import { Consumer } from "@millwright/events";
import { upstreamFeed, type ServiceOptions } from "@millwright/service";
import { WorkQueue } from "@millwright/work";
import { webhookIngressClient } from "./clients/webhook-ingress-client.ts";
import { onDeliveryEvents } from "./events/on-delivery-events.ts";
import { planAfterDelivery } from "./store/poll-store.ts";
import { pullRequestFactStore, pullRequestKeys } from "./store/pull-request-fact-store.ts";
import { REPLAY_FACTS, replayStore, type ReplayPage } from "./store/replay-store.ts";
import { RECORD_DELIVERY, recordDeliveries, type RecordDeliveriesDeps } from "./usecases/record-deliveries.ts";
import { replayFacts, type ReplayFactsDeps } from "./usecases/replay-facts.ts";
import { REPRICE_RUNS, repriceRuns } from "./usecases/reprice-runs.ts";

export type DeliveriesOptions = Pick<ServiceOptions, "clock" | "log" | "signer" | "tracer" | "wakeups"> & {
  readonly database: Database;
  readonly upstreams: { readonly webhookIngress: Transport };
  readonly timeScale: number;
  /** What a replay needs of runs. */
  readonly replayedRuns: ReplayFactsDeps["runs"];
};

const CONSUMER = { name: "deliveries", source: "webhook-ingress" };
/** How long a delivery stays claimed by a process that died. */
const LEASE_SECONDS = 30;
/** Deliveries that are recorded in one transaction, and how many such transactions a replica has at once. */
const BATCHES = { sizeMax: 250, concurrency: 2 };
/** One change causes several deliveries in quick succession; the pull request is read once for all of them. */
const POLL_AFTER_DELIVERY_MS = 120_000;

/**
 * Composes the consumer of delivery events and the work queue, which records deliveries, replays facts and re-prices
 * runs.
 */
export function composeDeliveries({
  database,
  clock,
  log,
  signer,
  tracer,
  wakeups,
  upstreams,
  timeScale,
  replayedRuns,
}: DeliveriesOptions) {
  const recording = {
    deliveries: webhookIngressClient(upstreams.webhookIngress, signer),
    pullRequests: pullRequestFactStore(database),
  };
  const replaying: ReplayFactsDeps = { replays: replayStore(database), runs: replayedRuns, recording };
  /** A new delivery makes its pull request due for a read. A replayed delivery did so when it was new. */
  const recordingNew: RecordDeliveriesDeps = {
    ...recording,
    pullRequests: {
      record: (reported, finish) =>
        recording.pullRequests.record(reported, async (tx) => {
          const pollAt = new Date(clock.now().getTime() + POLL_AFTER_DELIVERY_MS / timeScale);
          await planAfterDelivery(tx, pullRequestKeys(reported), pollAt);
          await finish(tx);
        }),
    },
  };
  const consumer = new Consumer({
    ...CONSUMER,
    read: upstreamFeed(upstreams.webhookIngress, signer),
    database,
    clock,
    log,
    tracer,
    handlers: {},
    batchHandlers: onDeliveryEvents(),
    wakeups,
  });
  const work = new WorkQueue({
    database,
    clock,
    log,
    tracer,
    leaseSeconds: LEASE_SECONDS / timeScale,
    batches: {
      [RECORD_DELIVERY]: {
        ...BATCHES,
        handle: (items, context) =>
          recordDeliveries(
            recordingNew,
            items.map(({ key }) => key),
            (tx) => context.finish(tx),
          ),
      },
    },
    handlers: {
      [REPLAY_FACTS]: ({ payload }, context) => replayFacts(replaying, payload as ReplayPage, context),
      [REPRICE_RUNS]: ({ key }, { signal }) => repriceRuns({ database, clock }, Number(key), signal),
    },
    separate: { [REPLAY_FACTS]: 1, [REPRICE_RUNS]: 1 },
  });
  return { consumedFeed: { feed: CONSUMER, consumer }, work };
}
