import { randomUUID } from "node:crypto";
import { Database } from "@millwright/database";
import { api, createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { summarize } from "../samples.ts";
import { ProtocolWorker } from "../worker.ts";

const SLOTS = 16;
const CLAIMS = 50;
/** Claims before each measurement: plans are made, and executions that have to wait for a budget are moved. */
const WARM_UP = 25;
const QUEUED = 4_000;
const WAIT_MS = 5_000;
const ENOUGH = 100_000;
const CREATED_AT_A_TIME = 32;

/**
 * Measures what budgets add to a claim of queued runs: in a team without an exhausted budget, beside one that covers
 * none of the runs, and beside one that covers as many other runs of the same lane, which have to wait.
 */
export async function measureClaims({ platform }: Bench): Promise<Measured[]> {
  const { url } = platform;
  const { teams } = await api<{ teams: { uid: string }[] }>(url, "/team");
  const teamUid = teams[0]!.uid;
  await api(url, `/team/${teamUid}`, { method: "PATCH", body: JSON.stringify({ concurrency_limit: ENOUGH }) });
  const worker = await ProtocolWorker.register(url, await createWorkerKey(url), SLOTS);
  const database = Database.open(platform.databaseUrl("millwright_orchestrator"), { max: 1 });
  const measured = async (budget: string): Promise<Measured> => ({
    what: `claim ${SLOTS} runs, ${QUEUED.toLocaleString("en")} queued, ${budget}`,
    who: "millwright",
    latencyMs: summarize(await timesOfClaims(worker)),
  });
  try {
    await queueRuns(url, QUEUED);
    const rows = [await measured("no budget exhausted")];
    const scheduleUid = await exhaustBudget(database, url, teamUid);
    rows.push(await measured("an exhausted budget of no run"));
    await queueRuns(url, QUEUED);
    await database.sql.query(START_HALF_BY_SCHEDULE, [scheduleUid]);
    rows.push(await measured("an exhausted budget of every second run"));
    return rows;
  } finally {
    await database.close();
  }
}

/** Returns how long each claim took, in milliseconds: the offers, and their acceptance. */
async function timesOfClaims(worker: ProtocolWorker): Promise<number[]> {
  const times: number[] = [];
  for (let n = -WARM_UP; n < CLAIMS; n++) {
    const beganMs = performance.now();
    const taken = await worker.take(SLOTS, WAIT_MS);
    if (n >= 0) times.push(performance.now() - beganMs);
    if (taken.length !== SLOTS) throw new Error(`A claim returned ${taken.length} of ${SLOTS} runs.`);
    await worker.complete(taken);
  }
  return times;
}

async function queueRuns(url: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += CREATED_AT_A_TIME)
    await Promise.all(Array.from({ length: CREATED_AT_A_TIME }, () => createRun(url)));
}

/** Creates a budget of a schedule, and marks it as exhausted, as spending does. Returns the uid of the schedule. */
async function exhaustBudget({ sql }: Database, url: string, teamUid: string): Promise<string> {
  const scheduleUid = randomUUID();
  const { uid } = await api<{ uid: string }>(url, `/team/${teamUid}/budgets`, {
    method: "POST",
    body: JSON.stringify({ scope: "schedule", scope_uid: scheduleUid, period: "total", limit_usd: 1 }),
  });
  await sql.query("UPDATE budgets SET exhausted_until = 'infinity' WHERE uid = $1", [uid]);
  return scheduleUid;
}

/** Changes queued runs as if a schedule had started every second one, with a model that has a price. */
const START_HALF_BY_SCHEDULE = `
  UPDATE runs r
     SET frozen = r.frozen - 'provider',
         schedule = CASE WHEN e.id % 2 = 0 THEN jsonb_build_object('schedule_id', $1::uuid) END
    FROM executions e
   WHERE e.run_uid = r.uid AND e.state = 'QUEUED' AND r.state = 'QUEUED'`;
