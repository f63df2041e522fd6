import { Chance } from "./chance.ts";
import { planRun, type RunPlan } from "./workload.ts";

/** What is done to a part of the platform, or to all replicas of a service, and for how long; milliseconds from the beginning of the schedule. */
export type Fault = { readonly atMs: number; readonly forMs: number } & (
  | { readonly kind: "kill" | "freeze" | "stop"; readonly target: string }
  | { readonly kind: "cut"; readonly target: string; readonly how: Cut }
  | { readonly kind: "backends" | "crash"; readonly target: string; readonly share: number }
  | { readonly kind: "wipe"; readonly target: "nats-server" }
);

/** refuse: connections break and none is taken · silence: nothing passes, and goes on when it is over · mute: requests pass, answers are lost. */
export type Cut = "refuse" | "silence" | "mute";

export type Schedule = { readonly seed: number; readonly runs: readonly RunPlan[]; readonly faults: readonly Fault[] };

/** The processes of a drill. */
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

/** Ends the name of a target that is every replica of a service. */
const ALL = "-all";

/** Work is begun, and harmed, within this time. */
const SPAN_MS = 2_500;
/** Up to 30 s of the platform's time: nobody shall notice. */
const SHORT_MS = 1_000;
/** Up to two minutes: leases run out. */
const LONG_MS = 4_000;

/** The schedule of a seed, always the same: one to three runs, one to three faults. */
export function scheduleOf(seed: number): Schedule {
  const chance = new Chance(seed);
  const runs = Array.from({ length: chance.between(1, 3) }, (_one, n) => planRun(chance, `d${seed}r${n}`));
  const faults = Array.from({ length: chance.between(1, 3) }, () => someFault(chance));
  return { seed, runs, faults: faults.toSorted((a, b) => a.atMs - b.atMs) };
}

function someFault(chance: Chance): Fault {
  const times = {
    atMs: chance.between(0, SPAN_MS),
    forMs: chance.between(50, chance.fraction() < 0.6 ? SHORT_MS : LONG_MS),
  };
  const kind = chance.weighted({ cut: 5, freeze: 4, backends: 3, kill: 3, wipe: 1, stop: 1 });
  switch (kind) {
    case "cut":
      return { ...times, kind, target: oneOf(chance, "worker"), how: chance.pick(["refuse", "silence", "mute"]) };
    case "freeze":
    case "kill": {
      const role = chance.weighted({ worker: 5, orchestrator: 2, gateway: 1, factories: 0.5 });
      return {
        ...times,
        kind,
        target: role !== "worker" && chance.fraction() < 0.3 ? `${role}${ALL}` : oneOf(chance, role),
      };
    }
    case "stop":
      return { ...times, kind, target: oneOf(chance, "worker") };
    case "backends":
      return {
        ...times,
        kind,
        target: chance.weighted({ orchestrator: 4, gateway: 1, factories: 1 }),
        share: chance.pick([0.3, 1]),
      };
    case "wipe":
      return { ...times, kind, target: "nats-server" };
    default:
      return kind satisfies never;
  }
}

const oneOf = (chance: Chance, role: keyof typeof CAST): string => `${role}-${chance.between(0, CAST[role] - 1)}`;

/** Returns a fault as a report names it. */
export const told = (fault: Fault): string =>
  `${fault.kind} ${fault.target}${variantOf(fault)} at ${fault.atMs} for ${fault.forMs} ms`;

/** Returns what a fault does, without its time and without which of several replicas it harms. */
export const faultType = (fault: Fault): string =>
  `${fault.kind} ${fault.target.replace(/-\d+$/, "")}${variantOf(fault)}`;

function variantOf(fault: Fault): string {
  if (fault.kind === "cut") return ` (${fault.how})`;
  return fault.kind === "backends" ? ` (${fault.share === 1 ? "all" : "some"})` : "";
}

/** The parts that a target names. */
export function partsOf(target: string): string[] {
  const role = target.slice(0, -ALL.length);
  return target.endsWith(ALL) && role in CAST
    ? Array.from({ length: CAST[role as keyof typeof CAST] }, (_one, n) => `${role}-${n}`)
    : [target];
}
