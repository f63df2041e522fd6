import { createHash } from "node:crypto";
import { Database } from "@millwright/database";
import { api } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { summarize } from "../samples.ts";
import { isRunWritten, writeRuns } from "./listing-rows.ts";

/** Numbers of runs at which pages are measured, up to the number that is wanted. */
const SIZES = [100_000, 1_000_000, 10_000_000];
const RUNS = 1_000_000;
const QUICK_RUNS = 50_000;
const PAGES = 25;
/** Reason of the response to a list that was cancelled. */
const TOO_SLOW = '"reason":"list_too_slow"';
const ORDERS = ["updated_at", "created_at", "title", "agent"].flatMap((by) =>
  ["desc", "asc"].map((order) => `sort_by=${by}&sort_order=${order}`),
);

const md5 = (text: string): string => createHash("md5").update(text).digest("hex");
const uuid = (text: string): string => md5(text).replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
const ago = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();

/** Filters with values that many runs, few runs and no runs have, and eight pairs of filters. */
const FILTERS: Readonly<Record<string, readonly string[]>> = {
  none: [""],
  state: ["state=SUCCEEDED", "state=QUEUED", "state=CLAIMED", "state=FAILED&state=ERROR"],
  task_status: ["task_status=complete", "task_status=running", "task_status=blocked"],
  "created_after, created_before, updated_after": [
    `created_after=${ago(300)}`,
    `created_after=${ago(0.01)}`,
    `created_before=${ago(200)}`,
    `created_before=${ago(10)}`,
    `updated_after=${ago(300)}`,
    `updated_after=${ago(2)}`,
  ],
  factory_uid: ["factory0", "factory39", "none"].map((value) => `factory_uid=${uuid(value)}`),
  name: ["agent0", "agent199", "none"].map((value) => `name=${value}`),
  model_id: ["model0", "model11", "none"].map((value) => `model_id=${value}`),
  creator: ["creator0", "creator499", "none"].map((value) => `creator=${uuid(value)}`),
  executor: ["executor0", "executor299", "none"].map((value) => `executor=${uuid(value)}`),
  source: ["API", "LOCAL", "TEAMS"].map((value) => `source=${value}`),
  execution_location: ["LOCAL", "REMOTE"].map((value) => `execution_location=${value}`),
  environment_id: [
    ...["environment0", "environment199", "none"].map((value) => md5(value).slice(0, 22)),
    "empty-environment",
  ].map((value) => `environment_id=${value}`),
  skill_spec: ["acme/shop0:skills/s0/SKILL.md", "acme/shop19:skills/s299/SKILL.md", "acme/none:skills/s/SKILL.md"].map(
    (value) => `skill_spec=${encodeURIComponent(value)}`,
  ),
  schedule_id: ["schedule0", "schedule999", "none"].map((value) => `schedule_id=${uuid(value)}`),
  artifact_type: ["PULL_REQUEST", "PLAN", "EXTERNAL_REFERENCE"].map((value) => `artifact_type=${value}`),
  metadata: [
    "metadata[squad]=squad0",
    "metadata[squad]=squad19",
    "metadata[ticket_id]=T-777",
    "metadata[ticket_id]=none",
  ],
  ancestor_run_id: [`ancestor_run_id=${uuid("run5")}`],
  q: ["q=word0", "q=word1999", "q=word150", "q=part44", "q=xylophone", "q=word3%20part7", `q=${uuid("run77")}`],
  "factory_uid and state": [`factory_uid=${uuid("factory0")}&state=FAILED`],
  "creator and state": [`creator=${uuid("creator0")}&state=BLOCKED`],
  "name and created_after": [`name=agent0&created_after=${ago(30)}`],
  "source and state": ["source=API&state=FAILED"],
  "environment_id and state": [`environment_id=${md5("environment0").slice(0, 22)}&state=ERROR`],
  "skill_spec and state": [`skill_spec=${encodeURIComponent("acme/shop0:skills/s0/SKILL.md")}&state=FAILED`],
  "metadata and state": ["metadata[squad]=squad0&state=CANCELLED"],
  "schedule_id and state": [`schedule_id=${uuid("schedule0")}&state=FAILED`],
};

/**
 * Measures pages of `GET /agent/runs` while the runs of one team become more: for each filter, the slowest value over
 * all eight orders. Sizes that the data of an earlier call exceeds are left out.
 */
export async function measureListing({ platform, isQuick, runs }: Bench): Promise<Measured[]> {
  const count = runs ?? (isQuick ? QUICK_RUNS : RUNS);
  const sizes = [...SIZES.filter((size) => size < count), count];
  const { teams } = await api<{ teams: { uid: string }[] }>(platform.url, "/team");
  const measured: Measured[] = [];
  let written = 0;
  for (const [n, size] of sizes.entries()) {
    const orchestrator = Database.open(platform.databaseUrl("millwright_orchestrator"), { max: 1 });
    try {
      const isWritten = await isRunWritten(orchestrator, size);
      if (isWritten && n < sizes.length - 1 && (await isRunWritten(orchestrator, sizes[n + 1]!))) continue;
      if (!isWritten) await writeRuns(orchestrator, teams[0]!.uid, { first: written + 1, last: size });
    } finally {
      await orchestrator.close();
      written = size;
    }
    measured.push(...(await measurePages(platform.url, size)));
  }
  return measured;
}

async function measurePages(url: string, size: number): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const [filter, values] of Object.entries(FILTERS)) {
    let worst: ReturnType<typeof summarize> | undefined;
    for (const value of values) {
      const times: number[] = [];
      for (const order of ORDERS) times.push(...(await pages(url, `/agent/runs?limit=20&${order}&${value}`)));
      const found = summarize(times);
      if (!worst || found.p99 > worst.p99) worst = found;
    }
    measured.push({
      what: `a page of ${size.toLocaleString("en")} runs by ${filter}`,
      who: "millwright",
      latencyMs: worst!,
    });
  }
  return measured;
}

/**
 * Returns the durations of sequential pages after one unmeasured request. The first page follows the last one. The
 * first page that the platform cancels because it takes too long ends the measurement.
 */
async function pages(url: string, path: string): Promise<number[]> {
  await page(url, path);
  const times: number[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined && times.length < PAGES;) {
    const beganMs = performance.now();
    cursor = await page(url, cursor === "" ? path : `${path}&cursor=${encodeURIComponent(cursor)}`);
    times.push(performance.now() - beganMs);
  }
  return times;
}

/** Returns the cursor of the next page, "" if there is none, and undefined if the page took too long. */
async function page(url: string, path: string): Promise<string | undefined> {
  try {
    return (await api<{ page_info: { next_cursor?: string } }>(url, path)).page_info.next_cursor ?? "";
  } catch (error) {
    if (error instanceof Error && error.message.includes(TOO_SLOW)) return undefined;
    throw error;
  }
}
