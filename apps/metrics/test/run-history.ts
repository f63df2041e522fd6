import { newUid } from "@millwright/ids";
import { seededRandom } from "@millwright/testing";
import type { History } from "./recompute-runs.ts";
import { aRun, type ActivityRow, type HostRow, type ProducedRow, type RunRow } from "./run-rows.ts";
import { OTHER_TEAM, TEAM } from "./setup.ts";

/** A report of facts, as it may come late, twice, or after a newer one. */
export type Report =
  | { readonly kind: "run"; readonly run: RunRow; readonly produced: readonly ProducedRow[] }
  | { readonly kind: "host"; readonly facts: HostRow }
  | { readonly kind: "activity"; readonly activity: ActivityRow };

export type Random = ReturnType<typeof seeded>;

const DAY_MS = 86_400_000;
const FIRST = Date.parse("2026-01-10T00:00:00Z");
const DAYS = 200;

const SOURCES = ["API", "SLACK", "WEB_APP", "SELF_IMPROVEMENT", "RUN_SCORER", "BENCHMARK_TRIAL"];
const STATES = ["QUEUED", "INPROGRESS", "SUCCEEDED", "FAILED", "BLOCKED", "CANCELLED"];
const AGENT_TYPES = ["FOREMAN", "TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "VERIFY", "CUSTOM", ""];
const REPOSITORIES = ["acme/shop", "acme/api", "acme/web", "acme/zoo", "acme/Shop", "ACME/api"];
const KINDS = [
  "opened",
  "code_push",
  "review_approved",
  "review_changes_requested",
  "review_commented",
  "comment",
  "review_comment",
  "pr_action",
];

/** Returns random choices that are the same for the same seed. */
export function seeded(seed: number) {
  const random = seededRandom(seed);
  const { below, chance } = random;
  /** A time of the history; often a midnight or a millisecond beside one. */
  const instant = (): Date =>
    new Date(FIRST + (chance(0.3) ? below(DAYS) * DAY_MS + below(3) - 1 : below(DAYS * DAY_MS)));
  /** A time after, sometimes before, another. */
  const around = (at: Date): Date => new Date(at.getTime() + below(3 * DAY_MS) - (chance(0.15) ? 4 * DAY_MS : 0));
  return { ...random, instant, around };
}

/**
 * Returns the runs and pull requests of two factories of the team, and the reports of them. The factories share
 * repositories and pull requests.
 */
export function aHistory(
  random: Random,
  factoryUids: readonly [string, string],
  repositories: readonly string[],
): { history: History; reports: Report[] } {
  const runs = makeRuns(random, factoryUids, 2_500);
  const urlKeys = Array.from({ length: 300 }, (_each, index) => `github.com/acme/repo/pull/${index}`);
  const produced = urlKeys.flatMap((url_key) => makeProduced(random, url_key, runs));
  const hostFacts = urlKeys.flatMap((url_key) => makeHostFacts(random, url_key));
  const activities = urlKeys.flatMap((url_key) => makeActivities(random, url_key));
  const runReports = runs.flatMap((run) => {
    const ofRun = produced.filter(({ run_uid }) => run_uid === run.run_uid);
    const earlier = { ...run, version: run.version - 1, state: random.pick(STATES), person_follow_ups: 0 };
    return [run, run, earlier]
      .slice(0, 1 + random.below(3))
      .map((each): Report => ({ kind: "run", run: each, produced: ofRun }));
  });
  const hostReports = hostFacts.map((facts): Report => ({ kind: "host", facts }));
  const activityReports = activities.flatMap((activity): Report[] => {
    const report: Report = { kind: "activity", activity };
    return random.chance(0.5) ? [report, report] : [report];
  });
  return {
    history: { factoryUid: factoryUids[0], teamUid: TEAM, repositories, runs, produced, hostFacts, activities },
    reports: random.shuffled([...runReports, ...hostReports, ...activityReports]),
  };
}

function makeRuns(random: Random, factoryUids: readonly string[], count: number): RunRow[] {
  const roots: RunRow[] = [];
  return Array.from({ length: count }, () => {
    const parent = roots.length > 0 && random.chance(0.6) ? random.pick(roots) : undefined;
    const run = aRun({
      team_uid: TEAM,
      factory_uid: parent?.factory_uid ?? random.pick(factoryUids),
      created_at: random.instant(),
      version: 2 + random.below(5),
      source: parent && random.chance(0.8) ? "ORCHESTRATION" : random.pick(SOURCES),
      state: random.pick(STATES),
      agent_type: random.pick(AGENT_TYPES),
      model_id: random.pick(["small", "large", ""]),
      harness: random.pick(["claude", "codex", "gemini", ""]),
      person_follow_ups: random.below(3),
      ...(parent && { parent_run_uid: parent.run_uid, root_run_uid: parent.run_uid }),
    });
    if (!parent) roots.push(run);
    return run;
  });
}

/** None, one or several runs of either factory name it. */
function makeProduced(random: Random, url_key: string, runs: readonly RunRow[]): ProducedRow[] {
  const [provider, repo_full_name] = [
    random.chance(0.1) ? "LOCAL" : "GITHUB",
    random.chance(0.05) ? "" : random.pick(REPOSITORIES),
  ];
  const producers = new Set(Array.from({ length: random.below(4) }, () => random.pick(runs)));
  return [...producers].map(({ run_uid, root_run_uid, team_uid, factory_uid, created_at }) => ({
    run_uid,
    root_run_uid,
    team_uid,
    factory_uid,
    url_key,
    provider,
    repo_full_name,
    created_at: random.around(created_at),
    run_created_at: created_at,
  }));
}

/** Most pull requests are known to their code host; some to that of another team as well. */
function makeHostFacts(random: Random, url_key: string): HostRow[] {
  const facts = (team_uid: string): HostRow => {
    const [opened_at, isMerged] = [random.instant(), random.chance(0.6)];
    const size = (): number | null => (random.chance(0.1) ? null : random.below(1_000));
    return {
      team_uid,
      url_key,
      repo_full_name: random.pick(REPOSITORIES),
      state: isMerged ? "merged" : random.pick(["open", "draft", "closed"]),
      opened_at: random.chance(0.1) ? null : opened_at,
      merged_at: isMerged ? random.around(opened_at) : null,
      additions: size(),
      deletions: size(),
    };
  };
  return [...(random.chance(0.85) ? [facts(TEAM)] : []), ...(random.chance(0.1) ? [facts(OTHER_TEAM)] : [])];
}

const makeActivities = (random: Random, url_key: string): ActivityRow[] =>
  Array.from({ length: random.below(6) }, () => ({
    team_uid: TEAM,
    url_key,
    activity_key: newUid(),
    kind: random.pick(KINDS),
    is_person: random.chance(0.6),
    is_dismissed: random.chance(0.1),
    occurred_at: random.instant(),
  }));
