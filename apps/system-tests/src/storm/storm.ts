import { setTimeout as pause } from "node:timers/promises";
import { Chance } from "../drill/chance.ts";
import { Rig } from "../drill/rig.ts";
import type { Fault } from "../drill/schedule.ts";
import { Ledger, type Promised } from "./ledger.ts";
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

export type StormOptions = {
  readonly seed: number;
  /** Number of delivery ids. Each is sent 48 times concurrently, to a webhook of its own. */
  readonly identities: number;
  /** Number of deliveries. Each is sent until it is accepted, distributed over other webhooks. */
  readonly deliveries: number;
  /** Longest time in which a delivery may stay unaccepted, or its decisions pending, in milliseconds. */
  readonly patienceMs: number;
  readonly onProgress?: (what: string) => void;
};

export type StormReport = {
  readonly copies: { readonly answered: number; readonly unanswered: number };
  readonly deliveries: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly breaches: readonly string[];
};

/**
 * Sends deliveries while the services that accept them, decide about them and start runs are killed. Checks that every
 * delivery answered 202 is processed exactly once. PostgreSQL runs with fsync, so that commits survive its crashes.
 */
export async function storm(options: StormOptions): Promise<StormReport> {
  const { seed, patienceMs, onProgress = () => {} } = options;
  const rig = await Rig.start({ patienceMs, replicas: REPLICAS, workers: 0, isDurable: true });
  const sender = new Sender(rig.cluster.ingressUrls());
  const ledger = new Ledger(rig.cluster);
  try {
    const targets = await makeTargets(rig.client, options.identities + Math.ceil(options.deliveries / PER_TARGET_MAX));
    onProgress(`${targets.length} webhooks`);
    const promised: Promised[] = [];
    const breaches: string[] = [];
    const weather = new Weather(rig, new Chance(seed));
    const copies = await weather.during(RESTARTS, () =>
      sendCopies(sender, ledger, targets.slice(0, options.identities), patienceMs, promised, breaches),
    );
    onProgress(`${options.identities} identities, ${copies.answered} copies answered`);
    await weather.during(EVERYTHING, () =>
      sendDeliveries(sender, targets.slice(options.identities), options.deliveries, patienceMs, promised),
    );
    onProgress(`${options.deliveries} deliveries accepted`);
    await settled(ledger, patienceMs);
    breaches.push(...(await ledger.breaches(promised)), ...rig.deaths);
    return { copies, deliveries: options.deliveries, faults: weather.inflicted, breaches };
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
  patienceMs: number,
  promised: Promised[],
  breaches: string[],
): Promise<StormReport["copies"]> {
  const total = { answered: 0, unanswered: 0 };
  const body = JSON.stringify({ n: 0, ...FIRING });
  await inTurns(targets, IDENTITIES_AT_ONCE, async (to) => {
    const id = `copy-${to.uid}`;
    const answers = await Promise.all(Array.from({ length: COPIES }, () => sender.attempt(to, id, body)));
    const answered = answers.filter((one) => one?.status === 202);
    if (answered.length === 0) await sender.deliver(to, id, body, patienceMs);
    const others = answers.filter((one) => one !== undefined && one.status !== 202 && one.status < 500);
    if (others.length > 0 || answered.some((one) => one!.deliveryId !== id))
      breaches.push(`copies of ${id} were answered ${JSON.stringify([...others, ...answered])}`);
    total.answered += answered.length;
    total.unanswered += COPIES - answered.length;
    promised.push({ webhookUid: to.uid, id, body });
    const { accepted, duplicates } = await ledger.entries(to.uid, id);
    if (accepted !== 1 || accepted + duplicates < answered.length)
      breaches.push(`${id}: ${answered.length} answered, ${accepted} accepted, ${duplicates} duplicates`);
  });
  return total;
}

async function sendDeliveries(
  sender: Sender,
  targets: readonly Target[],
  count: number,
  patienceMs: number,
  promised: Promised[],
): Promise<void> {
  const numbers = Array.from({ length: count }, (_one, n) => n);
  await inTurns(numbers, DELIVERIES_AT_ONCE, async (n) => {
    const to = targets[n % targets.length]!;
    const body = JSON.stringify({ n, ...(n % FIRES_ONE_IN === 0 && FIRING) });
    await sender.deliver(to, `d-${n}`, body, patienceMs);
    promised.push({ webhookUid: to.uid, id: `d-${n}`, body });
  });
}

/** Waits until all deliveries are decided, or until no decision was made for `patienceMs`. */
async function settled(ledger: Ledger, patienceMs: number): Promise<void> {
  let least = Infinity;
  for (let since = Date.now(); ; await pause(250)) {
    const left = await ledger.unsettled();
    if (left <= 0) return;
    if (left < least) [least, since] = [left, Date.now()];
    if (Date.now() > since + patienceMs) return; // `Ledger.breaches` reports the undecided deliveries.
  }
}

async function inTurns<T>(items: readonly T[], atOnce: number, each: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const work = async (): Promise<void> => {
    for (const item of left) await each(item);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

type Make = (chance: Chance) => Fault;

const ingress = (chance: Chance): string => `webhook-ingress-${chance.between(0, REPLICAS["webhook-ingress"] - 1)}`;
const times = (chance: Chance) => ({ atMs: 0, forMs: chance.between(50, 800) });

/** Kills or stops replicas of the webhook ingress. */
const RESTARTS: Make = (chance) => ({ ...times(chance), kind: chance.pick(["kill", "stop"]), target: ingress(chance) });

const EVERYTHING: Make = (chance) => {
  const kind = chance.weighted({ kill: 6, backends: 3, crash: 1, wipe: 1, freeze: 1 });
  switch (kind) {
    case "kill":
      return {
        ...times(chance),
        kind,
        target: chance.pick([ingress(chance), ingress(chance), "factories-0", "orchestrator-0"]),
      };
    case "freeze":
      return { ...times(chance), kind, target: ingress(chance) };
    case "backends":
    case "crash":
      return {
        ...times(chance),
        kind,
        target: chance.pick(["webhook-ingress", "factories", "orchestrator"]),
        share: 1,
      };
    case "wipe":
      return { ...times(chance), kind, target: "nats-server" };
    default:
      return kind satisfies never;
  }
};

/** Inflicts faults one after the other while work is in progress. */
class Weather {
  readonly inflicted: Record<string, number> = {};
  readonly #rig: Rig;
  readonly #chance: Chance;

  constructor(rig: Rig, chance: Chance) {
    this.#rig = rig;
    this.#chance = chance;
  }

  /** Inflicts at least one fault. */
  async during<T>(make: Make, work: () => Promise<T>): Promise<T> {
    const over = new AbortController();
    let count = 0;
    const blow = async (): Promise<void> => {
      do {
        const fault = make(this.#chance);
        const name = `${fault.kind} ${fault.target.replace(/-\d$/, "")}`;
        if (await this.#rig.inflict(fault)) {
          count += 1;
          this.inflicted[name] = (this.inflicted[name] ?? 0) + 1;
        }
        await pause(this.#chance.between(50, 400));
      } while (!over.signal.aborted || count === 0);
    };
    const blowing = blow();
    blowing.catch(() => {}); // Awaited after the work.
    try {
      return await work();
    } finally {
      over.abort();
      await blowing;
    }
  }
}
