import { setTimeout as pause } from "node:timers/promises";
import { Database } from "@millwright/database";
import { newUid } from "@millwright/ids";
import { api, createWorkerKey } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { round, summarize } from "../samples.ts";
import { ProtocolWorker } from "../worker.ts";
import { writeScores } from "./scoring-rows.ts";

const SCORES = 1_000_000;
const READS = 200;
const JUDGED_RUNS = 2_000;
const SLOTS = 16;
const DISPATCHED_AT_ONCE = 100;
const POLL_MS = 50;
const GIVE_UP_MS = 180_000;

const A_SCORER = {
  scope_mode: "all_agents",
  allowed_classifications: [
    { value: "good", score: 1 },
    { value: "bad", score: 0 },
  ],
  threshold: 0.5,
  scoring_prompt: "Did the run succeed?",
  model_id: "rule",
  sampling_rate: 0,
  rule: {
    checks: [
      { kind: "state", in: ["SUCCEEDED"] },
      { kind: "regex", target: "conversation", pattern: "greeting" },
    ],
    pass: "good",
    fail: "bad",
  },
};

/** Measures the rate at which rules judge finished runs, and the latency of results over a million scores. */
export async function measureScoring({ platform, isQuick }: Bench): Promise<Measured[]> {
  const scoring = Database.open(platform.databaseUrl("millwright_scoring"), { max: 1 });
  try {
    const factory = await api<{ uid: string; team_uid: string }>(platform.url, "/factory", post({ name: "Scored" }));
    const judged = await measureJudging(platform.url, scoring, factory.uid, isQuick ? JUDGED_RUNS / 10 : JUDGED_RUNS);
    return [judged, ...(await measureResults(platform.url, scoring, factory, isQuick ? SCORES / 20 : SCORES))];
  } finally {
    await scoring.close();
  }
}

/** Dispatches finished runs in batches and measures the time until the last of them has its score. */
async function measureJudging(url: string, scoring: Database, factoryUid: string, count: number): Promise<Measured> {
  const agent = await api<{ uid: string }>(url, "/agent/identities", post({ name: "coder", factory_uid: factoryUid }));
  const scorer = await createScorer(url, factoryUid, "Judged");
  const worker = await ProtocolWorker.register(url, await createWorkerKey(url), SLOTS);
  const runUids: string[] = [];
  while (runUids.length < count) {
    const create = () =>
      api<{ run_id: string }>(
        url,
        "/agent/runs",
        post({ prompt: "Greet.", title: "Greet", agent_identity_uid: agent.uid }),
      );
    await Promise.all(Array.from({ length: SLOTS }, create));
    for (let open = SLOTS; open > 0;) {
      const leases = await worker.claim(SLOTS, 5_000);
      await Promise.all(leases.map((each) => worker.append(each, 1, 2)));
      await worker.complete(leases);
      runUids.push(...leases.map(({ runUid }) => runUid));
      open -= leases.length;
    }
  }
  const beganMs = performance.now();
  for (let n = 0; n < runUids.length; n += DISPATCHED_AT_ONCE) {
    await api(
      url,
      `/factory/${factoryUid}/scorers/${scorer}/dispatch`,
      post({ run_ids: runUids.slice(n, n + DISPATCHED_AT_ONCE) }),
    );
  }
  for (let scored = 0; scored < runUids.length; await pause(POLL_MS)) {
    const { rows } = await scoring.sql.query<{ n: number }>(
      "SELECT count(*) AS n FROM attempts WHERE scorer_uid = $1 AND state = 'scored'",
      [scorer],
    );
    scored = rows[0]!.n;
    if (performance.now() - beganMs > GIVE_UP_MS)
      throw new Error(`Only ${scored} of ${runUids.length} runs were scored.`);
  }
  return {
    what: "finished runs judged by a rule",
    who: "millwright",
    perSecond: round(runUids.length / ((performance.now() - beganMs) / 1_000)),
  };
}

/** Measures each endpoint separately, with sequential requests. */
async function measureResults(
  url: string,
  scoring: Database,
  { uid: factoryUid, team_uid: teamUid }: { uid: string; team_uid: string },
  count: number,
): Promise<Measured[]> {
  const scorerUids: string[] = [];
  for (let n = 0; n < 4; n++) scorerUids.push(await createScorer(url, factoryUid, `Scorer ${n}`));
  const suiteUid = newUid();
  const runUids = await writeScores(scoring, { factoryUid, teamUid, suiteUid, scorerUids }, count);
  const scorer = (n: number): string => `/factory/${factoryUid}/scorers/${scorerUids[n % scorerUids.length]}`;
  const run = (n: number): string =>
    `/factory/${factoryUid}/benchmarks/${suiteUid}/runs/${runUids[n % runUids.length]}`;
  const endpoints: Readonly<Record<string, (n: number) => string>> = {
    "a scorer's results": (n) => `${scorer(n)}/results?limit=50`,
    "a scorer's metrics": (n) => `${scorer(n)}/metrics`,
    "the list of scorers": () => `/factory/${factoryUid}/scorers`,
    "benchmark results": (n) => `${run(n)}/results`,
    "benchmark results with all metric arrays": (n) =>
      `${run(n)}/results?include=configuration_metrics&include=scorer_metrics&include=task_metrics&include=tag_metrics`,
    "a page of trials with scores": (n) => `${run(n)}/trials?limit=50&include=results`,
  };
  const measured: Measured[] = [];
  for (const [what, path] of Object.entries(endpoints)) {
    for (let n = 0; n < 10; n++) await api(url, path(n));
    const times: number[] = [];
    for (let n = 0; n < READS; n++) {
      const beganMs = performance.now();
      await api(url, path(n));
      times.push(performance.now() - beganMs);
    }
    measured.push({
      what: `${what}, ${count.toLocaleString("en")} scores`,
      who: "millwright",
      latencyMs: summarize(times),
    });
  }
  return measured;
}

const post = (body: object) => ({ method: "POST", body: JSON.stringify(body) });

const createScorer = async (url: string, factoryUid: string, name: string): Promise<string> =>
  (await api<{ uid: string }>(url, `/factory/${factoryUid}/scorers`, post({ ...A_SCORER, name }))).uid;
