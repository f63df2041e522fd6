import type { RunState } from "../../runs/domain/run.ts";
import { waitingMessage } from "../../runs/domain/wait.ts";

/** The reason why a queued run waits. */
export type QueueReason =
  | "none"
  | "no_workers"
  | "no_matching_worker"
  | "paused"
  | "budget_exhausted"
  | "team_cap"
  | "agent_cap"
  | "factory_cap"
  | "stopping"
  | "workers_busy"
  | "behind_others"
  | "waiting_for_children";

/** The facts that determine whether and why a run waits. */
export type QueueFacts = {
  readonly state: RunState;
  readonly isWaiting: boolean;
  readonly awaitedCount: number;
  /**
   * 1 = the next execution of its owner (a team or a user): 1 + the number of the owner's queued executions that are
   * served first.
   */
  readonly position?: number;
  readonly harness: string;
  readonly image?: string;
  readonly arch?: string;
  readonly workerHost?: string;
  readonly pausedScopes: readonly string[];
  /** The message of the exhausted budget that blocks it. */
  readonly exhaustedBudget?: string;
  readonly fullScopes: readonly string[];
  /** True while its previous execution is stopping. */
  readonly isStopping: boolean;
  /**
   * Numbers of: connected workers that may serve the run's owner; those of them that also fit the run's requirements;
   * free slots of the latter.
   */
  readonly workers: number;
  readonly matchingWorkers: number;
  readonly freeSlots: number;
};

export type QueueStatus = {
  readonly state: RunState;
  readonly position?: number;
  readonly reason: QueueReason;
  readonly message: string;
};

/** Returns why a run waits, with a message: the first condition that would have to change. */
export function explainQueue(facts: QueueFacts): QueueStatus {
  const { reason, message } = reasonOf(facts);
  return {
    state: facts.state,
    reason,
    message,
    position: facts.state === "QUEUED" && facts.position !== undefined ? facts.position : undefined,
  };
}

function reasonOf(facts: QueueFacts): { reason: QueueReason; message: string } {
  if (facts.isWaiting) return { reason: "waiting_for_children", message: waitingMessage(facts.awaitedCount) };
  if (facts.state === "PENDING") return { reason: "none", message: "The run is being assigned to a worker." };
  if (facts.state !== "QUEUED") return { reason: "none", message: "The run is not queued." };
  if (facts.workers === 0)
    return {
      reason: "no_workers",
      message: "No connected worker serves this run's owner. Start a worker with a key of the team.",
    };
  if (facts.matchingWorkers === 0) return { reason: "no_matching_worker", message: missingWorkerMessage(facts) };
  const [paused] = facts.pausedScopes;
  if (paused !== undefined)
    return { reason: "paused", message: `The ${paused} is paused. Resume it to start new runs.` };
  if (facts.exhaustedBudget !== undefined) return { reason: "budget_exhausted", message: facts.exhaustedBudget };
  if (facts.isStopping)
    return { reason: "stopping", message: "The previous execution of the run is still being stopped." };
  if (facts.fullScopes.includes("team") || facts.fullScopes.includes("user"))
    return { reason: "team_cap", message: "The team has reached its concurrency limit." };
  if (facts.fullScopes.includes("agent"))
    return { reason: "agent_cap", message: "The agent has reached its concurrency limit." };
  if (facts.fullScopes.includes("factory"))
    return { reason: "factory_cap", message: "The factory has reached its concurrency limit." };
  if (facts.freeSlots === 0)
    return { reason: "workers_busy", message: "Every worker that could execute the run is busy." };
  const runsAhead = (facts.position ?? 1) - 1;
  if (runsAhead > 0)
    return {
      reason: "behind_others",
      message: `${runsAhead === 1 ? "One other run" : `${runsAhead} other runs`} of the same owner ${runsAhead === 1 ? "is" : "are"} served first.`,
    };
  return { reason: "none", message: "The run is being assigned to a worker." };
}

function missingWorkerMessage({ harness, image, arch, workerHost }: QueueFacts): string {
  const needed = [
    `the harness "${harness}"`,
    ...(image ? [`the image "${image}"`] : []),
    ...(arch ? [`the architecture "${arch}"`] : []),
  ];
  const offered = needed.length > 2 ? `${needed.slice(0, -1).join(", ")} and ${needed.at(-1)}` : needed.join(" and ");
  return workerHost
    ? `No worker named "${workerHost}" with ${offered} is connected.`
    : `No connected worker offers ${offered}.`;
}
