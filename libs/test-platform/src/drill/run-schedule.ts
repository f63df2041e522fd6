import { setTimeout as pause } from "node:timers/promises";
import { processesOfRuns } from "../processes.ts";
import { violationsOf, effectViolationsOf, isGivenUp, reasonOf } from "./violations.ts";
import { factsOf, progressOf, type RunFacts } from "./facts.ts";
import type { Rig } from "./rig.ts";
import type { Schedule } from "./schedule.ts";
import type { Action, RunPlan } from "./workload.ts";

const POLL_MS = 200;
const ENDED = ["SUCCEEDED", "FAILED", "BLOCKED", "ERROR", "CANCELLED"];

export type ScheduleResult = {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly tookMs: number;
  /** Number of faults that were inflicted. */
  readonly faults: number;
  /** Final states of its runs, including child runs. */
  readonly states: readonly string[];
  readonly losses: number;
  /** Reasons for which the platform ended runs. */
  readonly givenUp: readonly string[];
  readonly followUps: number;
};

/** Accepted requests of one planned run. */
type DrivenRun = { readonly runId: string; readonly followUps: readonly string[]; readonly isCancelled: boolean };

/**
 * Runs a schedule: starts its runs, executes their actions and inflicts its faults, waits until everything has ended and
 * then checks the invariants. `stallTimeoutMs` is the longest time in which its runs may make no progress; a slow run
 * that progresses is waited for.
 */
export async function runSchedule(
  rig: Rig,
  { seed, runs, faults }: Schedule,
  stallTimeoutMs: number,
): Promise<ScheduleResult> {
  const began = Date.now();
  const inflicted = Promise.all(faults.map((fault) => pause(fault.atMs).then(() => rig.inflict(fault))));
  inflicted.catch(() => {}); // Awaited below.
  const roots: string[] = [];
  const driven: DrivenRun[] = [];
  const acting = Promise.all(
    runs.map(async (plan, n) => (driven[n] = await drive(rig, plan, (runId) => roots.push(runId)))),
  );
  const ending = waitForEnd(rig, roots, () => driven.filter(Boolean).length < runs.length, stallTimeoutMs);
  const stalled = await Promise.race([ending, acting.then(() => ending)]);
  const done = await inflicted;
  const facts = await factsOf(rig.database.sql, roots);
  const violations = [
    ...stalled,
    ...facts.flatMap(violationsOf),
    ...runs.flatMap((plan, n) => (driven[n] ? ofPlan(plan, driven[n], facts) : [`${plan.name} was not finished`])),
    ...(await publicViolations(rig, roots, facts)),
    ...(await remainingProcesses(facts, stallTimeoutMs)),
  ];
  return {
    seed,
    violations,
    tookMs: Date.now() - began,
    faults: done.filter(Boolean).length,
    states: facts.map(({ state }) => state),
    losses: facts.flatMap(({ events }) => events.filter(({ kind }) => kind === "worker_lost")).length,
    givenUp: facts.filter(isGivenUp).map(reasonOf),
    followUps: facts.flatMap(({ messages }) => messages.filter(({ kind }) => kind === "followup")).length,
  };
}

/** Starts a run and executes its planned actions. */
async function drive(rig: Rig, plan: RunPlan, onCreated: (runId: string) => void): Promise<DrivenRun> {
  await pause(plan.atMs);
  const path = plan.isWork ? `/factory/${rig.factoryUid}/runs` : "/agent/runs";
  const { run_id: runId } = await rig.client.request("POST", path, {
    prompt: plan.prompt,
    config: { idle_timeout_minutes: 0 },
  });
  onCreated(runId);
  const results = await Promise.all(plan.actions.map((action) => executeAction(rig, runId, action)));
  const followUps = plan.actions.flatMap((action) => (action.kind === "followup" ? [action.text] : []));
  return { runId, followUps, isCancelled: results.includes("cancelled") };
}

async function executeAction(
  { client, database }: Rig,
  runId: string,
  action: Action,
): Promise<"cancelled" | undefined> {
  if (action.kind === "followup") {
    while (action.isAfterEnd && !ENDED.includes((await client.request("GET", `/agent/runs/${runId}`)).state))
      await pause(POLL_MS);
    await pause(action.atMs);
    await client.request("POST", `/agent/runs/${runId}/followups`, { message: action.text });
    return undefined;
  }
  await pause(action.atMs);
  if (action.kind === "interrupt") {
    await client.send("POST", `/agent/runs/${runId}/interrupt`); // The run may have ended already.
    return undefined;
  }
  const { status, body } = await client.send("POST", `/agent/runs/${runId}/cancel${action.isTree ? "?tree=true" : ""}`);
  if (status === 200) return "cancelled";
  if (body?.reason !== "run_already_finished") throw new Error(`POST cancel: ${status} ${JSON.stringify(body)}`);
  // Cancels the rest of the tree instead of waiting up to ten minutes for its end.
  for (const { uid } of (await progressOf(database.sql, [runId])).active)
    await client.send("POST", `/agent/runs/${uid}/cancel?tree=true`);
  return undefined;
}

/**
 * Waits until all actions are done, all runs are terminal and no lease is left. Returns the runs and leases that made no
 * progress for `stallTimeoutMs`.
 */
async function waitForEnd(
  { database, client }: Rig,
  roots: readonly string[],
  isActing: () => boolean,
  stallTimeoutMs: number,
): Promise<string[]> {
  let before = -1;
  for (let since = Date.now(); ; await pause(POLL_MS)) {
    const wasActing = isActing(); // Read before the query, which misses what is done after it.
    const { active, leases, progress } = await progressOf(database.sql, roots);
    const isDone = active.length === 0 && leases === 0;
    if (isDone && !wasActing) return [];
    if (progress !== before || isDone) since = Date.now(); // All runs are terminal, but an action is still pending.
    before = progress;
    if (Date.now() - since < stallTimeoutMs) continue;
    const reasons = await Promise.all(
      active.map(
        async ({ uid, state }) =>
          `run ${uid} makes no progress, ${state}: ${JSON.stringify((await client.send("GET", `/agent/runs/${uid}/queue`)).body)}`,
      ),
    );
    return leases > 0 && active.length === 0
      ? [`${leases} leases of ended runs are left: ${roots.join(", ")}`]
      : reasons;
  }
}

/** Checks that a run performed its plan and reached an expected final state. */
function ofPlan(plan: RunPlan, { runId, followUps, isCancelled }: DrivenRun, facts: readonly RunFacts[]): string[] {
  const run = facts.find(({ uid }) => uid === runId);
  if (!run) return [`run ${runId} (${plan.name}) was accepted but is not in the database`];
  const received = run.messages.filter(({ kind }) => kind === "followup").map(({ text }) => text);
  const violations =
    received.toSorted().join() === followUps.toSorted().join()
      ? []
      : [`run ${runId}: accepted follow-ups ${followUps.join(" ")}, has ${received.join(" ")}`];
  const wanted = isCancelled
    ? followUps.length > 0
      ? ["CANCELLED", "SUCCEEDED", "BLOCKED"]
      : ["CANCELLED"]
    : followUps.length > 0
      ? ["SUCCEEDED", "BLOCKED"]
      : ["SUCCEEDED"];
  if (!wanted.includes(run.state) && !isGivenUp(run))
    violations.push(
      `run ${runId} (${plan.name}) is ${run.state} (${run.errorCode}: ${run.message}), not ${wanted.join(" or ")}`,
    );
  return [...violations, ...effectViolationsOf(run, plan, facts)];
}

/** Checks that the public API reports the same states as the database. */
async function publicViolations(
  { client }: Rig,
  roots: readonly string[],
  facts: readonly RunFacts[],
): Promise<string[]> {
  const results = await Promise.all(
    roots.map(async (uid) => {
      const stored = facts.find((fact) => fact.uid === uid);
      const [run, { followups }] = await Promise.all([
        client.request("GET", `/agent/runs/${uid}`),
        client.request("GET", `/agent/runs/${uid}/followups`),
      ]);
      const isSame =
        run.state === stored?.state &&
        (stored?.errorCode ?? undefined) === (run.status_message?.error_code ?? undefined);
      const followUpOutcomes = followups.map(
        ({ followup_id: id, state }: { followup_id: string; state: string }) => `${id} ${state}`,
      );
      const storedFollowUpStates = stored?.messages
        .filter(({ kind }) => kind === "followup")
        .map(
          (message) =>
            `${message.uid} ${message.isDelivered ? "delivered" : message.isUndeliverable ? "undeliverable" : "queued"}`,
        );
      return isSame && followUpOutcomes.join() === storedFollowUpStates?.join()
        ? []
        : [
            `run ${uid}: the API returns ${run.state}, ${run.status_message?.error_code}, ${followUpOutcomes.join()}; the database has ${stored?.state}, ${stored?.errorCode}, ${storedFollowUpStates?.join()}`,
          ];
    }),
  );
  return results.flat();
}

/** Checks that no process of these runs is left on this machine. */
async function remainingProcesses(facts: readonly RunFacts[], stallTimeoutMs: number): Promise<string[]> {
  for (const deadline = Date.now() + stallTimeoutMs; ; await pause(POLL_MS)) {
    const left = processesOfRuns(facts.map(({ uid }) => uid));
    if (left.length === 0) return [];
    if (Date.now() > deadline)
      return left.map(
        ({ pid, command }) => `process ${pid} of a run that has ended is alive: ${command.slice(0, 200)}`,
      );
  }
}
