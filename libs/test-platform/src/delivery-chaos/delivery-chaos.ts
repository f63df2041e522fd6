import { setTimeout as pause } from "node:timers/promises";
import { SeededRandom } from "../drill/seeded-random.ts";
import { Rig } from "../drill/rig.ts";
import type { Fault } from "../drill/schedule.ts";
import { Ledger, type AcceptedDelivery } from "./ledger.ts";
import { Sender } from "./sender.ts";
import { FIRING, makeTargets, type Target } from "./targets.ts";

const REPLICAS = {
  gateway: 1,
  orchestrator: 1,
  factories: 1,
  scheduler: 1,
  scoring: 1,
  metrics: 1,
  "webhook-ingress": 3,
} as const;
const COPIES = 48;
/** Below the limit of 60 deliveries a minute per webhook, with capacity left for retries. */
const PER_TARGET_MAX = 40;
/** One in this many deliveries starts a run. */
const FIRES_ONE_IN = 5;
const IDENTITIES_AT_ONCE = 4;
const DELIVERIES_AT_ONCE = 24;

export type DeliveryChaosOptions = {
  readonly seed: number;
  /** Number of delivery ids. Each is sent 48 times concurrently, to a webhook of its own. */
  readonly identities: number;
  /** Number of deliveries. Each is sent until it is accepted, distributed over other webhooks. */
  readonly deliveries: number;
  /** Longest time in which a delivery may stay unaccepted, or its decisions pending, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly onProgress?: (what: string) => void;
};

export type DeliveryChaosReport = {
  readonly copies: { readonly answered: number; readonly unanswered: number };
  readonly deliveries: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
};

/**
 * Sends deliveries while the services that accept them, decide about them and start runs are killed. Checks that every
 * delivery answered 202 is processed exactly once. PostgreSQL runs with fsync, so that commits survive its crashes.
 */
export async function deliveryChaos(options: DeliveryChaosOptions): Promise<DeliveryChaosReport> {
  const { seed, stallTimeoutMs, onProgress = () => {} } = options;
  const rig = await Rig.start({ stallTimeoutMs, replicas: REPLICAS, workers: 0, isDurable: true });
  const sender = new Sender(rig.cluster.ingressUrls());
  const ledger = new Ledger(rig.cluster);
  try {
    const targets = await makeTargets(rig.client, options.identities + Math.ceil(options.deliveries / PER_TARGET_MAX));
    onProgress(`${targets.length} webhooks`);
    const acceptedDeliveries: AcceptedDelivery[] = [];
    const violations: string[] = [];
    const injector = new FaultInjector(rig, new SeededRandom(seed));
    const copies = await injector.during(RESTARTS, () =>
      sendCopies(sender, ledger, targets.slice(0, options.identities), stallTimeoutMs, acceptedDeliveries, violations),
    );
    onProgress(`${options.identities} identities, ${copies.answered} copies answered`);
    await injector.during(EVERYTHING, () =>
      sendDeliveries(sender, targets.slice(options.identities), options.deliveries, stallTimeoutMs, acceptedDeliveries),
    );
    onProgress(`${options.deliveries} deliveries accepted`);
    await settled(ledger, stallTimeoutMs);
    violations.push(...(await ledger.violations(acceptedDeliveries)), ...rig.unexpectedExits);
    return { copies, deliveries: options.deliveries, faults: injector.inflicted, violations };
  } finally {
    sender.close();
    await ledger.close();
    await rig.close();
  }
}

async function sendCopies(
  sender: Sender,
  ledger: Ledger,
  targets: readonly Target[],
  stallTimeoutMs: number,
  acceptedDeliveries: AcceptedDelivery[],
  violations: string[],
): Promise<DeliveryChaosReport["copies"]> {
  const total = { answered: 0, unanswered: 0 };
  const body = JSON.stringify({ n: 0, ...FIRING });
  await inTurns(targets, IDENTITIES_AT_ONCE, async (to) => {
    const id = `copy-${to.uid}`;
    const responses = await Promise.all(Array.from({ length: COPIES }, () => sender.attempt(to, id, body)));
    const answered = responses.filter((response) => response?.status === 202);
    if (answered.length === 0) await sender.deliver(to, id, body, stallTimeoutMs);
    const others = responses.filter(
      (response) => response !== undefined && response.status !== 202 && response.status < 500,
    );
    if (others.length > 0 || answered.some((response) => response!.deliveryId !== id))
      violations.push(`copies of ${id} were answered ${JSON.stringify([...others, ...answered])}`);
    total.answered += answered.length;
    total.unanswered += COPIES - answered.length;
    acceptedDeliveries.push({ webhookUid: to.uid, id, body });
    const { accepted, duplicates } = await ledger.entries(to.uid, id);
    if (accepted !== 1 || accepted + duplicates < answered.length)
      violations.push(`${id}: ${answered.length} answered, ${accepted} accepted, ${duplicates} duplicates`);
  });
  return total;
}

async function sendDeliveries(
  sender: Sender,
  targets: readonly Target[],
  count: number,
  stallTimeoutMs: number,
  acceptedDeliveries: AcceptedDelivery[],
): Promise<void> {
  const numbers = Array.from({ length: count }, (_one, n) => n);
  await inTurns(numbers, DELIVERIES_AT_ONCE, async (n) => {
    const to = targets[n % targets.length]!;
    const body = JSON.stringify({ n, ...(n % FIRES_ONE_IN === 0 && FIRING) });
    await sender.deliver(to, `d-${n}`, body, stallTimeoutMs);
    acceptedDeliveries.push({ webhookUid: to.uid, id: `d-${n}`, body });
  });
}

/** Waits until all deliveries are decided, or until no decision was made for `stallTimeoutMs`. */
async function settled(ledger: Ledger, stallTimeoutMs: number): Promise<void> {
  let least = Infinity;
  for (let since = Date.now(); ; await pause(250)) {
    const left = await ledger.unsettled();
    if (left <= 0) return;
    if (left < least) [least, since] = [left, Date.now()];
    if (Date.now() > since + stallTimeoutMs) return; // `Ledger.violations` reports the undecided deliveries.
  }
}

async function inTurns<T>(items: readonly T[], atOnce: number, each: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const work = async (): Promise<void> => {
    for (const item of left) await each(item);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

type Make = (random: SeededRandom) => Fault;

const ingress = (random: SeededRandom): string =>
  `webhook-ingress-${random.between(0, REPLICAS["webhook-ingress"] - 1)}`;
const times = (random: SeededRandom) => ({ atMs: 0, forMs: random.between(50, 800) });

/** Kills or stops replicas of the webhook ingress. */
const RESTARTS: Make = (random) => ({ ...times(random), kind: random.pick(["kill", "stop"]), target: ingress(random) });

const EVERYTHING: Make = (random) => {
  const kind = random.weighted({ kill: 6, backends: 3, crash: 1, wipe: 1, freeze: 1 });
  switch (kind) {
    case "kill":
      return {
        ...times(random),
        kind,
        target: random.pick([ingress(random), ingress(random), "factories-0", "orchestrator-0"]),
      };
    case "freeze":
      return { ...times(random), kind, target: ingress(random) };
    case "backends":
    case "crash":
      return {
        ...times(random),
        kind,
        target: random.pick(["webhook-ingress", "factories", "orchestrator"]),
        share: 1,
      };
    case "wipe":
      return { ...times(random), kind, target: "nats-server" };
    default:
      return kind satisfies never;
  }
};

/** Inflicts faults one after the other while work is in progress. */
class FaultInjector {
  readonly inflicted: Record<string, number> = {};
  readonly #rig: Rig;
  readonly #random: SeededRandom;

  constructor(rig: Rig, random: SeededRandom) {
    this.#rig = rig;
    this.#random = random;
  }

  /** Inflicts at least one fault. */
  async during<T>(make: Make, work: () => Promise<T>): Promise<T> {
    const done = new AbortController();
    let count = 0;
    const injectFaults = async (): Promise<void> => {
      do {
        const fault = make(this.#random);
        const name = `${fault.kind} ${fault.target.replace(/-\d$/, "")}`;
        if (await this.#rig.inflict(fault)) {
          count += 1;
          this.inflicted[name] = (this.inflicted[name] ?? 0) + 1;
        }
        await pause(this.#random.between(50, 400));
      } while (!done.signal.aborted || count === 0);
    };
    const injecting = injectFaults();
    injecting.catch(() => {}); // Awaited after the work.
    try {
      return await work();
    } finally {
      done.abort();
      await injecting;
    }
  }
}
