import { Database } from "@millwright/database";
import { api } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { measureFacts } from "./metrics-facts.ts";
import { isYearWritten, writeYear, type FactoryOfTeam } from "./metrics-rows.ts";

const RUNS = 1_000_000;
const READS = 200;
/** Numbers of reads of plain SQL, which take up to a second for a month and several for a year. */
const PLAIN_READS = 20;
const PLAIN_READS_OF_YEAR = 5;
/** Below the rate limit of one key for one factory in a minute. */
const READS_PER_KEY = 50;
const DAY_MS = 86_400_000;

/** Queries of the ranges before a time. */
const rangesBefore = (end: Date): Readonly<Record<"30 days" | "365 days by day", string>> => ({
  "30 days": `end_date=${end.toISOString()}`,
  "365 days by day": `group_by_period=day&${new URLSearchParams({
    start_date: new Date(end.getTime() - 364 * DAY_MS).toISOString(),
    end_date: end.toISOString(),
  })}`,
});

/** Endpoints with their required parameters. */
const ENDPOINTS = {
  metrics: "/metrics?",
  "run breakdown": "/metrics/run-breakdown?group_by=status&",
  "cost per pull request": "/costs/per-pr?",
  "cost breakdown": "/costs/breakdown?group_by=user&",
  "costliest pull requests": "/costs/per-pr/top?",
  "cost by size": "/costs/per-pr/by-size?",
} as const;

/** Equivalent queries on the raw tables, as a report would execute them. */
const PLAIN_SQL = {
  "run breakdown, 30 days":
    "SELECT state, count(*) FROM run_facts WHERE factory_uid = $1 AND created_at >= $2::timestamptz - interval '30 days' AND created_at < $2 GROUP BY state",
  "cost breakdown, 30 days":
    "SELECT creator_uid, component, sum(micros) FROM ledger_entries WHERE factory_uid = $1 AND occurred_at >= $2::timestamptz - interval '30 days' AND occurred_at < $2 GROUP BY 1, 2",
} as const;
const PLAIN_SQL_YEAR = {
  "run breakdown, 365 days by day":
    "SELECT created_at::date, state, count(*) FROM run_facts WHERE factory_uid = $1 AND created_at >= $2::timestamptz - interval '364 days' AND created_at < $2 GROUP BY 1, 2",
  "cost breakdown, 365 days by day":
    "SELECT occurred_at::date, creator_uid, component, sum(micros) FROM ledger_entries WHERE factory_uid = $1 AND occurred_at >= $2::timestamptz - interval '364 days' AND occurred_at < $2 GROUP BY 1, 2, 3",
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
    for (const [what, path] of Object.entries(ENDPOINTS)) {
      for (const [range, query] of Object.entries(rangesBefore(end))) {
        if (path.startsWith("/costs/per-pr/top") && query.includes("group_by_period")) continue; // this endpoint has no periods
        measured.push({
          what: `${what}, ${range}, ${among}`,
          who: "millwright",
          latencyMs: summarize(await reader.measure(path + query)),
        });
      }
    }
    measured.push({
      what: `a page of pull requests, ${among}`,
      who: "millwright",
      latencyMs: summarize(await reader.measure("/pull-requests")),
    });
    for (const [queries, reads] of [
      [PLAIN_SQL, PLAIN_READS] as const,
      [PLAIN_SQL_YEAR, PLAIN_READS_OF_YEAR] as const,
    ]) {
      for (const [what, text] of Object.entries(queries)) {
        const query = () => database.sql.query(text, [factoryUid, end]);
        measured.push({
          what: `${what}, ${among}`,
          who: "plain SQL",
          latencyMs: summarize(await timesOf(query, async () => "", reads)),
        });
      }
    }
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
