import { SeededRandom } from "./seeded-random.ts";
import { planRun, type RunPlan } from "./workload.ts";

/**
 * A disturbance of one process or of all replicas of a service. `atMs` counts from the start of the schedule, `forMs`
 * is its duration, both in milliseconds.
 */
export type Fault = { readonly atMs: number; readonly forMs: number } & (
  | { readonly kind: "kill" | "freeze" | "stop"; readonly target: string }
  | { readonly kind: "cut"; readonly target: string; readonly network: NetworkFault }
  | { readonly kind: "backends" | "crash"; readonly target: string; readonly share: number }
  | { readonly kind: "wipe"; readonly target: "nats-server" }
);

/**
 * `refuse`: existing connections break and new ones are refused. `silence`: no data passes until the cut ends. `mute`:
 * requests pass, responses are lost.
 */
export type NetworkFault = "refuse" | "silence" | "mute";

export type Schedule = { readonly seed: number; readonly runs: readonly RunPlan[]; readonly faults: readonly Fault[] };

/** Number of processes of each role in a drill. */
export const CAST = {
  gateway: 2,
  orchestrator: 2,
  factories: 1,
  scheduler: 1,
  scoring: 1,
  metrics: 1,
  "webhook-ingress": 1,
  worker: 4,
} as const;
export const TIME_SCALE = 30;

/** Suffix of a target that is every replica of a service. */
const ALL = "-all";

/** Runs and faults start within this time. */
const SPAN_MS = 2_500;
/** At most 30 s of platform time, which the platform tolerates without any visible effect. */
const SHORT_MS = 1_000;
/** At most two minutes of platform time, in which leases expire. */
const LONG_MS = 4_000;

/** Returns the schedule of a seed: one to three runs and one to three faults. The result is deterministic. */
export function scheduleOf(seed: number): Schedule {
  const random = new SeededRandom(seed);
  const runs = Array.from({ length: random.between(1, 3) }, (_one, n) => planRun(random, `d${seed}r${n}`));
  const faults = Array.from({ length: random.between(1, 3) }, () => randomFault(random));
  return { seed, runs, faults: faults.toSorted((a, b) => a.atMs - b.atMs) };
}

function randomFault(random: SeededRandom): Fault {
  const times = {
    atMs: random.between(0, SPAN_MS),
    forMs: random.between(50, random.fraction() < 0.6 ? SHORT_MS : LONG_MS),
  };
  const kind = random.weighted({ cut: 5, freeze: 4, backends: 3, kill: 3, wipe: 1, stop: 1 });
  switch (kind) {
    case "cut":
      return {
        ...times,
        kind,
        target: randomReplica(random, "worker"),
        network: random.pick(["refuse", "silence", "mute"]),
      };
    case "freeze":
    case "kill": {
      const role = random.weighted({ worker: 5, orchestrator: 2, gateway: 1, factories: 0.5 });
      return {
        ...times,
        kind,
        target: role !== "worker" && random.fraction() < 0.3 ? `${role}${ALL}` : randomReplica(random, role),
      };
    }
    case "stop":
      return { ...times, kind, target: randomReplica(random, "worker") };
    case "backends":
      return {
        ...times,
        kind,
        target: random.weighted({ orchestrator: 4, gateway: 1, factories: 1 }),
        share: random.pick([0.3, 1]),
      };
    case "wipe":
      return { ...times, kind, target: "nats-server" };
    default:
      return kind satisfies never;
  }
}

const randomReplica = (random: SeededRandom, role: keyof typeof CAST): string =>
  `${role}-${random.between(0, CAST[role] - 1)}`;

/** Returns the description of a fault for reports. */
export const describeFault = (fault: Fault): string =>
  `${fault.kind} ${fault.target}${variantOf(fault)} at ${fault.atMs} for ${fault.forMs} ms`;

/** Returns the type of a fault: kind, role and variant, without its time and replica index. */
export const faultType = (fault: Fault): string =>
  `${fault.kind} ${fault.target.replace(/-\d+$/, "")}${variantOf(fault)}`;

function variantOf(fault: Fault): string {
  if (fault.kind === "cut") return ` (${fault.network})`;
  return fault.kind === "backends" ? ` (${fault.share === 1 ? "all" : "some"})` : "";
}

/** Returns the names of the processes of a target. */
export function partsOf(target: string): string[] {
  const role = target.slice(0, -ALL.length);
  return target.endsWith(ALL) && role in CAST
    ? Array.from({ length: CAST[role as keyof typeof CAST] }, (_one, n) => `${role}-${n}`)
    : [target];
}
