import { setTimeout as pause } from "node:timers/promises";
import { Database } from "@millwright/database";
import { api } from "../api.ts";
import type { Bench } from "../bench.ts";
import { costPerOperation } from "../cost.ts";
import { serversOf } from "../platform.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";

const SCHEDULES = 10_000;
const POLL_MS = 25;
/** Schedules of the warm-up, so that the measured round does not include first-time costs. */
const WARM_UP = 500;
const GIVE_UP_MS = 60_000;

/**
 * Measures the delay of runs if many schedules are due in the same second: from the slot until the run's row is
 * committed and visible to other transactions.
 */
export async function measureSchedules({ platform, meter, isQuick }: Bench): Promise<Measured[]> {
  const count = isQuick ? SCHEDULES / 10 : SCHEDULES;
  const scheduler = Database.open(platform.databaseUrl("millwright_scheduler"), { max: 1 });
  const orchestrator = Database.open(platform.databaseUrl("millwright_orchestrator"), { max: 1 });
  try {
    await measureLags(platform.url, scheduler, orchestrator, WARM_UP);
    const { result: found, usage } = await meter.measure(serversOf(platform), () =>
      measureLags(platform.url, scheduler, orchestrator, count),
    );
    const seconds = Math.max(...found) / 1_000;
    return [
      {
        what: `${count.toLocaleString("en")} schedules due in the same second, to committed runs`,
        who: "millwright",
        perSecond: round(count / seconds),
        latencyMs: summarize(found),
        cost: costPerOperation([usage], count),
      },
    ];
  } finally {
    await scheduler.close();
    await orchestrator.close();
  }
}

async function measureLags(url: string, scheduler: Database, orchestrator: Database, count: number): Promise<number[]> {
  const request = {
    name: `bench ${count}`,
    cron_schedule: "0 0 1 1 *",
    prompt: "Read the release notes.",
    catch_up_seconds: 31_622_400,
  };
  const { id } = await api<{ id: string }>(url, "/agent/schedules", { method: "POST", body: JSON.stringify(request) });
  const { rows: columns } = await scheduler.sql.query<{ list: string }>(
    "SELECT string_agg(quote_ident(column_name), ', ') AS list FROM information_schema.columns WHERE table_name = 'schedules' AND column_name <> 'uid'",
  );
  // All other schedules are copies of the one that was created through the API.
  await scheduler.sql.query(
    `INSERT INTO schedules (uid, ${columns[0]!.list}) SELECT gen_random_uuid(), ${columns[0]!.list} FROM schedules, generate_series(2, $2::integer) WHERE uid = $1`,
    [id, count],
  );
  const before = await countScheduledRuns(orchestrator);
  const dueMs = Math.ceil((Date.now() + 1_500) / 1_000) * 1_000;
  await scheduler.sql.query(
    "UPDATE schedules SET next_slot_at = $2 WHERE name = (SELECT name FROM schedules WHERE uid = $1)",
    [id, new Date(dueMs)],
  );
  await pause(dueMs - Date.now());
  const found: number[] = [];
  while (found.length < count) {
    const [seen, atMs] = [(await countScheduledRuns(orchestrator)) - before, Date.now() - dueMs];
    for (let n = found.length; n < seen; n += 1) found.push(atMs);
    if (atMs > GIVE_UP_MS) throw new Error(`Only ${found.length} of ${count} schedules have created their runs.`);
    await pause(POLL_MS);
  }
  return found;
}

/**
 * Returns the number of scheduled runs. Counting reads all runs, and its duration is included in the measured delay.
 */
async function countScheduledRuns(orchestrator: Database): Promise<number> {
  const { rows } = await orchestrator.searches.query<{ n: number }>(
    "SELECT count(*) AS n FROM runs WHERE source = 'SCHEDULED_AGENT'",
  );
  return rows[0]!.n;
}
