import { setTimeout as pause } from "node:timers/promises";
import { processesOfRuns } from "../processes.ts";
import { violationsOf, effectViolationsOf, isGivenUp, reasonOf } from "./violations.ts";
import { factsOf, standingOf, type RunFacts } from "./facts.ts";
import type { Rig } from "./rig.ts";
import type { Schedule } from "./schedule.ts";
import type { Act, RunPlan } from "./workload.ts";

const POLL_MS = 200;
const ENDED = ["SUCCEEDED", "FAILED", "BLOCKED", "ERROR", "CANCELLED"];

export type Played = {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly tookMs: number;
  /** Number of faults that were inflicted. */
  readonly faults: number;
  /** Final states of its runs, including child runs. */
  readonly states: readonly string[];
  readonly losses: number;
  /** Reasons for which the platform gave runs up. */
  readonly givenUp: readonly string[];
  readonly followUps: number;
};

/** Accepted requests of one planned run. */
type Answered = { readonly runId: string; readonly followUps: readonly string[]; readonly isCancelled: boolean };

/**
 * Plays a schedule: starts its runs, performs their acts and inflicts its faults, waits until everything has ended and
 * then checks the invariants. `stallTimeoutMs` is the longest time in which its runs may make no progress; a slow run
 * that progresses is waited for.
 */
export async function play(rig: Rig, { seed, runs, faults }: Schedule, stallTimeoutMs: number): Promise<Played> {
  const began = Date.now();
  const inflicted = Promise.all(faults.map((fault) => pause(fault.atMs).then(() => rig.inflict(fault))));
  inflicted.catch(() => {}); // Awaited below.
  const roots: string[] = [];
  const acted: Answered[] = [];
  const acting = Promise.all(
    runs.map(async (plan, n) => (acted[n] = await drive(rig, plan, (runId) => roots.push(runId)))),
  );
  const ending = hasEnded(rig, roots, () => acted.filter(Boolean).length < runs.length, stallTimeoutMs);
  const standstill = await Promise.race([ending, acting.then(() => ending)]);
  const done = await inflicted;
  const facts = await factsOf(rig.database.sql, roots);
  const violations = [
    ...standstill,
    ...facts.flatMap(violationsOf),
    ...runs.flatMap((plan, n) => (acted[n] ? ofPlan(plan, acted[n], facts) : [`${plan.name} was not done to the end`])),
    ...(await publicly(rig, roots, facts)),
    ...(await leftProcesses(facts, stallTimeoutMs)),
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

/** Starts a run and performs its planned acts. */
async function drive(rig: Rig, plan: RunPlan, onCreated: (runId: string) => void): Promise<Answered> {
  await pause(plan.atMs);
  const path = plan.isWork ? `/factory/${rig.factoryUid}/runs` : "/agent/runs";
  const { run_id: runId } = await rig.client.must("POST", path, {
    prompt: plan.prompt,
    config: { idle_timeout_minutes: 0 },
  });
  onCreated(runId);
  const told = await Promise.all(plan.acts.map((act) => carryOut(rig, runId, act)));
  const followUps = plan.acts.flatMap((act) => (act.kind === "followup" ? [act.text] : []));
  return { runId, followUps, isCancelled: told.includes("cancelled") };
}

async function carryOut({ client, database }: Rig, runId: string, act: Act): Promise<"cancelled" | undefined> {
  if (act.kind === "followup") {
    while (act.isAfterEnd && !ENDED.includes((await client.must("GET", `/agent/runs/${runId}`)).state))
      await pause(POLL_MS);
    await pause(act.atMs);
    await client.must("POST", `/agent/runs/${runId}/followups`, { message: act.text });
    return undefined;
  }
  await pause(act.atMs);
  if (act.kind === "interrupt") {
    await client.ask("POST", `/agent/runs/${runId}/interrupt`); // The run may have ended already.
    return undefined;
  }
  const { status, body } = await client.ask("POST", `/agent/runs/${runId}/cancel${act.isTree ? "?tree=true" : ""}`);
  if (status === 200) return "cancelled";
  if (body?.reason !== "run_already_finished") throw new Error(`POST cancel: ${status} ${JSON.stringify(body)}`);
  // Cancels the rest of the tree instead of waiting up to ten minutes for its end.
  for (const { uid } of (await standingOf(database.sql, [runId])).live)
    await client.ask("POST", `/agent/runs/${uid}/cancel?tree=true`);
  return undefined;
}

/**
 * Waits until all acts are done, all runs are terminal and no lease is left. Returns the runs and leases that made no
 * progress for `stallTimeoutMs`.
 */
async function hasEnded(
  { database, client }: Rig,
  roots: readonly string[],
  isActing: () => boolean,
  stallTimeoutMs: number,
): Promise<string[]> {
  let before = -1;
  for (let since = Date.now(); ; await pause(POLL_MS)) {
    const wasActing = isActing(); // Read before the query, which misses what is done after it.
    const { live, held, progress } = await standingOf(database.sql, roots);
    const isOver = live.length === 0 && held === 0;
    if (isOver && !wasActing) return [];
    if (progress !== before || isOver) since = Date.now(); // All runs are terminal, but an act is still pending.
    before = progress;
    if (Date.now() - since < stallTimeoutMs) continue;
    const reasons = await Promise.all(
      live.map(
        async ({ uid, state }) =>
          `run ${uid} stands still, ${state}: ${JSON.stringify((await client.ask("GET", `/agent/runs/${uid}/queue`)).body)}`,
      ),
    );
    return held > 0 && live.length === 0
      ? [`${held} leases are left of runs that have ended: ${roots.join(", ")}`]
      : reasons;
  }
}

/** Checks that a run performed its plan and reached an expected final state. */
function ofPlan(plan: RunPlan, { runId, followUps, isCancelled }: Answered, facts: readonly RunFacts[]): string[] {
  const run = facts.find(({ uid }) => uid === runId);
  if (!run) return [`run ${runId} (${plan.name}) was answered and is nowhere`];
  const said = run.messages.filter(({ kind }) => kind === "followup").map(({ text }) => text);
  const violations =
    said.toSorted().join() === followUps.toSorted().join()
      ? []
      : [`run ${runId}: accepted follow-ups ${followUps.join(" ")}, has ${said.join(" ")}`];
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
async function publicly({ client }: Rig, roots: readonly string[], facts: readonly RunFacts[]): Promise<string[]> {
  const told = await Promise.all(
    roots.map(async (uid) => {
      const stored = facts.find((one) => one.uid === uid);
      const [run, { followups }] = await Promise.all([
        client.must("GET", `/agent/runs/${uid}`),
        client.must("GET", `/agent/runs/${uid}/followups`),
      ]);
      const isSame =
        run.state === stored?.state &&
        (stored?.errorCode ?? undefined) === (run.status_message?.error_code ?? undefined);
      const followUpOutcomes = followups.map(
        ({ followup_id: id, state }: { followup_id: string; state: string }) => `${id} ${state}`,
      );
      const storedFates = stored?.messages
        .filter(({ kind }) => kind === "followup")
        .map((one) => `${one.uid} ${one.isDelivered ? "delivered" : one.isUndeliverable ? "undeliverable" : "queued"}`);
      return isSame && followUpOutcomes.join() === storedFates?.join()
        ? []
        : [
            `run ${uid}: the API says ${run.state}, ${run.status_message?.error_code}, ${followUpOutcomes.join()}; stored are ${stored?.state}, ${stored?.errorCode}, ${storedFates?.join()}`,
          ];
    }),
  );
  return told.flat();
}

/** Checks that no process of these runs is left on this machine. */
async function leftProcesses(facts: readonly RunFacts[], stallTimeoutMs: number): Promise<string[]> {
  for (const deadline = Date.now() + stallTimeoutMs; ; await pause(POLL_MS)) {
    const left = processesOfRuns(facts.map(({ uid }) => uid));
    if (left.length === 0) return [];
    if (Date.now() > deadline)
      return left.map(
        ({ pid, command }) => `process ${pid} of a run that has ended is alive: ${command.slice(0, 200)}`,
      );
  }
}
