import { Database } from "@millwright/database";
import { api } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { measureFacts } from "./metrics-facts.ts";
import { PLAIN_SQL } from "./metrics-plain-sql.ts";
import { isYearWritten, writeYear, type FactoryOfTeam } from "./metrics-rows.ts";

const RUNS = 1_000_000;
const READS = 200;
/** Number of reads of plain SQL, most of which take seconds. */
const PLAIN_READS = 3;
/** Below the rate limit of one key for one factory in a minute. */
const READS_PER_KEY = 50;
const DAY_MS = 86_400_000;

/** Returns the measured ranges before a time. */
function rangesBefore(end: Date) {
  const rangeOf = (days: number, isByDay: boolean) => {
    const start = new Date(end.getTime() - days * DAY_MS);
    const query = new URLSearchParams({
      ...(isByDay && { group_by_period: "day" }),
      ...{ start_date: start.toISOString(), end_date: end.toISOString() },
    });
    return { start, isByDay, query };
  };
  return { "30 days": rangeOf(30, false), "365 days by day": rangeOf(364, true) };
}

/** Endpoints with their required parameters. */
const ENDPOINTS = {
  metrics: "/metrics?",
  "run breakdown": "/metrics/run-breakdown?group_by=status&",
  "cost per pull request": "/costs/per-pr?",
  "cost breakdown": "/costs/breakdown?group_by=user&",
  "costliest pull requests": "/costs/per-pr/top?",
  "cost by size": "/costs/per-pr/by-size?",
} as const;

/**
 * Measures the latency of metrics requests over a million runs, ten million ledger entries and a hundred thousand pull
 * requests, and the rate at which the service stores new facts in these tables.
 */
export async function measureMetrics({ platform, isQuick }: Bench): Promise<Measured[]> {
  const database = Database.open(platform.databaseUrl("millwright_metrics"), { max: 1 });
  try {
    const runs = isQuick ? RUNS / 20 : RUNS;
    const among = `${runs.toLocaleString("en")} runs`;
    const { factoryUid, teamUid, end } = await prepareYear(platform.url, database, runs);
    const reader = new Reader(platform.url, { factoryUid, teamUid });
    const measured: Measured[] = [];
    for (const [endpoint, path] of Object.entries(ENDPOINTS)) {
      for (const [range, { start, isByDay, query }] of Object.entries(rangesBefore(end))) {
        if (path.startsWith("/costs/per-pr/top") && isByDay) continue; // this endpoint has no periods
        const what = `${endpoint}, ${range}, ${among}`;
        measured.push({ what, who: "millwright", latencyMs: summarize(await reader.measure(path + query)) });
        const plainSql = PLAIN_SQL[endpoint]!(isByDay);
        const read = () => database.sql.query(plainSql, [factoryUid, start, end]);
        const times = await timesOf(read, async () => "", PLAIN_READS);
        measured.push({ what, who: "plain SQL", latencyMs: summarize(times) });
      }
    }
    measured.push({
      what: `a page of pull requests, ${among}`,
      who: "millwright",
      latencyMs: summarize(await reader.measure("/pull-requests")),
    });
    measured.push(await reader.measureExport(`an export of pull requests, ${among}`));
    return [
      ...measured,
      ...(await measureFacts(platform.databaseUrl("millwright_metrics"), { factoryUid, teamUid }, among)),
    ];
  } finally {
    await database.close();
  }
}

type Year = FactoryOfTeam & { readonly end: Date };
type FactoryRecord = { readonly uid: string; readonly team_uid: string; readonly created_at: string };

/** Writes a year of a new factory, or returns the one that an earlier benchmark has written with the same `--data`. */
async function prepareYear(url: string, database: Database, runs: number): Promise<Year> {
  const name = `Measured with ${runs} runs`;
  const yearOf = ({ uid, team_uid: teamUid, created_at: end }: FactoryRecord): Year => ({
    ...{ factoryUid: uid, teamUid },
    end: lastNoonBefore(new Date(end)),
  });
  const { factories } = await api<{ factories: FactoryRecord[] }>(url, `/factory?search=${encodeURIComponent(name)}`);
  for (const written of factories.map(yearOf)) if (await isYearWritten(database, written)) return written;
  const year = yearOf(await api<FactoryRecord>(url, "/factory", post({ name })));
  await writeYear(database, year, runs);
  return year;
}

/** Ranges that begin and end at noon have the longest partial days, which are not read as daily sums. */
const lastNoonBefore = (time: Date): Date =>
  new Date(Math.floor((time.getTime() - DAY_MS / 2) / DAY_MS) * DAY_MS + DAY_MS / 2);

/** Reads sequentially, and switches to a new key before the rate limit is reached. */
class Reader {
  readonly #url: string;
  readonly #of: FactoryOfTeam;
  #key = "";
  #reads = READS_PER_KEY;

  constructor(url: string, of: FactoryOfTeam) {
    this.#url = url;
    this.#of = of;
  }

  measure(path: string): Promise<number[]> {
    return timesOf(
      (key) => this.#read(path, key),
      () => this.#nextKey(),
      READS,
    );
  }

  /** Measures one export of all pull requests as JSON lines. */
  async measureExport(what: string): Promise<Measured> {
    const key = await this.#nextKey();
    const beganMs = performance.now();
    const lines = await this.#read("/pull-requests", key, "application/x-ndjson");
    return { what, who: "millwright", perSecond: round((lines * 1000) / (performance.now() - beganMs)) };
  }

  async #nextKey(): Promise<string> {
    if (this.#reads === READS_PER_KEY) {
      this.#reads = 0;
      this.#key = (
        await api<{ api_key: string }>(this.#url, `/team/${this.#of.teamUid}/keys`, post({ name: "bench" }))
      ).api_key;
    }
    this.#reads += 1;
    return this.#key;
  }

  /** Requests a path. Returns the number of line breaks in the response. */
  async #read(path: string, key: string, accept = "application/json"): Promise<number> {
    const response = await fetch(`${this.#url}/api/v1/factory/${this.#of.factoryUid}${path}`, {
      headers: { authorization: `Bearer ${key}`, accept },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return text.split("\n").length - 1;
  }
}

/**
 * Returns the duration of each read in milliseconds. `prepare` and the first tenth of the reads (warm-up) are not
 * measured.
 */
async function timesOf(
  read: (prepared: string) => Promise<unknown>,
  prepare: () => Promise<string>,
  reads: number,
): Promise<number[]> {
  const times: number[] = [];
  for (let n = -Math.ceil(reads / 10); n < reads; n++) {
    const prepared = await prepare();
    const beganMs = performance.now();
    await read(prepared);
    if (n >= 0) times.push(performance.now() - beganMs);
  }
  return times;
}

const post = (body: object) => ({ method: "POST", body: JSON.stringify(body) });
