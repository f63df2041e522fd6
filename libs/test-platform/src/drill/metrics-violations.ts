import { setTimeout as pause } from "node:timers/promises";
import type { Sql } from "@millwright/database";

const POLL_MS = 500;

type RunRow = { readonly uid: string; readonly state: string; readonly intervals: number };

/**
 * Checks that metrics has every run of a factory in the state in which the orchestrator has it, and that the ledger has
 * each of its compute intervals once. Metrics follows events, so differences count only if they last for `timeoutMs`
 * after the last change.
 */
export async function metricsViolations(orchestrator: Sql, metrics: Sql, timeoutMs: number): Promise<string[]> {
  let differences = await differencesOf(orchestrator, metrics);
  for (let deadline = Date.now() + timeoutMs; differences.length > 0 && Date.now() < deadline;) {
    await pause(POLL_MS);
    const before = differences.length;
    differences = await differencesOf(orchestrator, metrics);
    if (differences.length < before) deadline = Date.now() + timeoutMs;
  }
  return differences;
}

async function differencesOf(orchestrator: Sql, metrics: Sql): Promise<string[]> {
  const runs = await orchestrator.query<RunRow>(
    `SELECT r.uid, r.state, (SELECT count(*)::int FROM compute_intervals i WHERE i.run_uid = r.uid) AS intervals
       FROM runs r
      WHERE r.factory_uid IS NOT NULL`,
  );
  const facts = await metrics.query<RunRow>(
    `SELECT f.run_uid AS uid, f.state,
            (SELECT count(*)::int FROM ledger_entries l WHERE l.run_uid = f.run_uid AND l.kind = 'compute_interval') AS intervals
       FROM run_facts f`,
  );
  const known = new Map(facts.rows.map((fact) => [fact.uid, fact]));
  return runs.rows.flatMap(({ uid, state, intervals }) => {
    const fact = known.get(uid);
    if (!fact) return [`metrics does not have run ${uid}, which is ${state}`];
    return [
      ...(fact.state === state ? [] : [`metrics has run ${uid} as ${fact.state}, not ${state}`]),
      ...(fact.intervals === intervals
        ? []
        : [`the ledger has ${fact.intervals} compute intervals of run ${uid}, not ${intervals}`]),
    ];
  });
}
