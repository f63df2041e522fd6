import { randomUUID } from "node:crypto";
import { Database } from "@millwright/database";
import { api, createRun, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { summarize } from "../samples.ts";
import { ProtocolWorker } from "../worker.ts";

const SLOTS = 16;
const CLAIMS = 80;
/** First claims, which are not measured: plans are made, and executions that have to wait for a budget are moved. */
const WARM_UP = 20;
const WAIT_MS = 5_000;
const QUEUED = 4_000;
const ENOUGH = 100_000;
const CREATED_AT_A_TIME = 32;

/** How many of a team's queued runs an exhausted budget covers. Undefined: the team has no exhausted budget. */
const COVERED = {
  "no budget exhausted": undefined,
  "an exhausted budget of no run": 0,
  "an exhausted budget of half of them": 0.5,
};

/**
 * Measures what budgets add to a claim of queued runs. Teams that differ in their budgets take turns; each has a worker
 * of its own.
 */
export async function measureClaims({ platform }: Bench): Promise<Measured[]> {
  const database = Database.open(platform.databaseUrl("millwright_orchestrator"), { max: 1 });
  try {
    const teams = [];
    for (const [what, covered] of Object.entries(COVERED)) {
      const worker = await teamWithQueue(platform.url, database, covered);
      teams.push({ what, worker, times: [] as number[] });
    }
    for (let n = -WARM_UP; n < CLAIMS; n++)
      for (const { worker, times } of teams) {
        const ms = await timeOfClaim(worker);
        if (n >= 0) times.push(ms);
      }
    return teams.map(({ what, times }) => ({
      what: `claim ${SLOTS} of ${QUEUED.toLocaleString("en")} queued runs, ${what}`,
      who: "millwright",
      latencyMs: summarize(times),
    }));
  } finally {
    await database.close();
  }
}

/** Returns how long the worker waited for offers and their acceptance, in milliseconds. Completes the runs. */
async function timeOfClaim(worker: ProtocolWorker): Promise<number> {
  const beganMs = performance.now();
  const leases = await worker.claim(SLOTS, WAIT_MS);
  const ms = performance.now() - beganMs;
  if (leases.length !== SLOTS) throw new Error(`A claim returned ${leases.length} of ${SLOTS} runs.`);
  await worker.complete(leases);
  return ms;
}

/** Creates a team with queued runs, of which an exhausted budget covers a share. Returns the team's worker. */
async function teamWithQueue(url: string, { sql }: Database, covered: number | undefined): Promise<ProtocolWorker> {
  const owner = { name: `Claims ${randomUUID()}`, owner_email: `${randomUUID()}@example.com` };
  const { team, api_key: apiKey } = await api<{ team: { uid: string }; api_key: string }>(url, "/team", post(owner));
  await api(url, `/team/${team.uid}`, { method: "PATCH", body: JSON.stringify({ concurrency_limit: ENOUGH }), apiKey });
  for (let n = 0; n < QUEUED; n += CREATED_AT_A_TIME)
    await Promise.all(Array.from({ length: CREATED_AT_A_TIME }, () => createRun(url, apiKey)));
  if (covered !== undefined) {
    const scheduleUid = randomUUID();
    const budget = post({ scope: "schedule", scope_uid: scheduleUid, period: "total", limit_usd: 1 });
    const { uid } = await api<{ uid: string }>(url, `/team/${team.uid}/budgets`, { ...budget, apiKey });
    await sql.query("UPDATE budgets SET exhausted_until = 'infinity' WHERE uid = $1", [uid]);
    await sql.query(START_BY_SCHEDULE, [team.uid, scheduleUid, covered]);
  }
  return ProtocolWorker.register(url, await createWorkerKey(url, apiKey), SLOTS, `claims-${team.uid}`);
}

/**
 * Changes a share of a team's runs as if a schedule had started them, and all as if their model had a price: scripted
 * models cost nothing.
 */
const START_BY_SCHEDULE = `
  UPDATE runs
     SET frozen = frozen - 'provider',
         schedule = CASE WHEN abs(hashtext(uid::text)) % 100 < 100 * $3::float8 THEN jsonb_build_object('schedule_id', $2::uuid) END
   WHERE owner_uid = $1 AND state = 'QUEUED'`;

const post = (body: object) => ({ method: "POST", body: JSON.stringify(body) });
