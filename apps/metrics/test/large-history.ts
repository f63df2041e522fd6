import { clone } from "@bufbuild/protobuf";
import { orchestrator } from "@millwright/contracts";
import { uidOf } from "@millwright/ids";
import { seededRandom, type SeededRandom } from "@millwright/testing";
import {
  computeInterval,
  finishRun,
  modelCall,
  producedPullRequest,
  runSnapshot,
  type FakeRun,
} from "./run-samples.ts";
import { TEAM, type World } from "./setup.ts";

const FIRST_MS = Date.parse("2026-09-01T00:00:00Z");
const DAYS = 78;
const DAY_MS = 86_400_000;
const REPOSITORY = "acme/shop";
const PULL_REQUESTS = 900;
/** Known to their code host, but produced by no run. */
const FOREIGN = 100;

export type Report = { readonly event: string; readonly payload: Record<string, unknown>; readonly receivedAt: Date };

/**
 * Everything that happened. `early`: some of it as it was before the end. `events`: how many facts and notifications
 * there are.
 */
export type LargeHistory = {
  readonly factoryUids: readonly string[];
  readonly runs: readonly FakeRun[];
  readonly early: readonly FakeRun[];
  readonly reports: readonly Report[];
  readonly events: number;
};

export const pullRequestUrl = (number: number): string => `https://github.com/${REPOSITORY}/pull/${number}`;

/**
 * Makes a history of at least `size` events: runs with their attempts, model calls, compute and pull requests, and
 * deliveries of a code host.
 */
export function largeHistory(seed: number, size: number, factoryUids: readonly string[]): LargeHistory {
  const random = seededRandom(seed);
  const reports = Array.from({ length: PULL_REQUESTS + FOREIGN }, (_each, index) =>
    random.chance(0.85) || index >= PULL_REQUESTS ? reportsOf(random, index + 1) : [],
  ).flat();
  const runs: FakeRun[] = [];
  let events = reports.length;
  while (events < size) {
    const run = makeRun(random, `${seed} ${runs.length}`, runs, factoryUids);
    runs.push(run);
    // created, changed, finished
    events += 3 + run.modelCalls.length + run.computeIntervals.length + run.pullRequests.length + run.personFollowUps;
  }
  return { factoryUids, runs, early: runs.map((run) => earlier(random, run)), reports, events };
}

/** A time of the history; often a midnight or a millisecond beside one. */
function someTime({ chance, below }: SeededRandom): Date {
  const day = FIRST_MS + below(DAYS) * DAY_MS;
  return new Date(chance(0.1) ? day + below(3) - 1 : day + below(DAY_MS));
}

function makeRun(
  random: SeededRandom,
  name: string,
  runs: readonly FakeRun[],
  factoryUids: readonly string[],
): FakeRun {
  const { pick, chance, below } = random;
  const parent = runs.length > 0 && chance(0.5) ? pick(runs) : undefined;
  const factoryUid = parent?.costOwner!.factoryUid ?? pick(factoryUids);
  const candidate = runs.length > 0 && chance(0.2) ? pick(runs) : undefined;
  const isEarliest =
    candidate?.costOwner!.factoryUid === factoryUid && candidate.inferenceOwner!.runUid === candidate.uid;
  const createdAt = someTime(random);
  const run = runSnapshot({
    uid: uidOf(name),
    teamUid: TEAM,
    factoryUid,
    createdAt,
    version: 3n,
    source: pick(["API", "SLACK", "SCHEDULED", "SELF_IMPROVEMENT"]),
    agentUid: pick([uidOf("agent a"), uidOf("agent b"), ""]),
    agentType: pick(["IMPLEMENT", "REVIEW", ""]),
    modelId: pick(["large", "small", ""]),
    harness: pick(["claude", "codex", ""]),
    creatorUid: pick([uidOf("ann"), uidOf("bob"), ""]),
    personFollowUps: below(3),
    ...(parent && { parent }),
    ...(isEarliest && { continues: candidate }),
  });
  const after = (): Date => new Date(createdAt.getTime() + below(DAY_MS));
  for (let call = below(32); call > 0; call--)
    run.modelCalls.push(
      modelCall({
        callId: `${name} ${call}`,
        recordedAt: after(),
        costMicros: chance(0.05) ? undefined : BigInt(below(1_000_000)),
      }),
    );
  for (let attempt = below(8); attempt > 0; attempt--) {
    const startedAt = after();
    const shape = { vcpus: pick([0, 0.5, 2]), memoryGb: pick([0.5, 4]) };
    const endedAt = new Date(startedAt.getTime() + below(7_200_000));
    run.computeIntervals.push(computeInterval({ executionId: 1n, attempt, startedAt, endedAt, ...shape }));
  }
  if (chance(0.3)) {
    const numbers = new Set([1 + below(PULL_REQUESTS), 1 + below(PULL_REQUESTS)]);
    for (const number of numbers)
      run.pullRequests.push(
        producedPullRequest({ url: pullRequestUrl(number), repository: REPOSITORY, number, createdAt: after() }),
      );
  }
  finishRun(run, new Date(createdAt.getTime() + 2 * DAY_MS), pick(["SUCCEEDED", "FAILED", "CANCELLED"]));
  return run;
}

/** Returns an earlier snapshot of a run: with a part of its usage, in progress. */
function earlier(random: SeededRandom, final: FakeRun): FakeRun {
  const run = clone(orchestrator.RunFactsSchema, final);
  Object.assign(run, { version: 1n, state: "INPROGRESS", finishedAt: undefined });
  run.modelCalls.splice(random.below(run.modelCalls.length + 1));
  run.computeIntervals.splice(random.below(run.computeIntervals.length + 1));
  run.pullRequests.splice(random.below(run.pullRequests.length + 1));
  return run;
}

const BOT = { login: "millwright[bot]", type: "Bot" };
const PERSON = { login: "ada", type: "User" };

/**
 * Returns what a code host reports of a pull request, oldest first. Its times differ by seconds, so that one report is
 * the newest.
 */
function reportsOf(random: SeededRandom, number: number): Report[] {
  const { pick, chance, below } = random;
  let at = new Date(Math.floor(someTime(random).getTime() / 1000) * 1000);
  const createdAt = at;
  const someone = (): object => pick([BOT, PERSON, PERSON]);
  const pullRequest = (changes: object = {}): object => ({
    html_url: pullRequestUrl(number),
    number,
    title: `Change ${number}`,
    state: "open",
    draft: false,
    user: BOT,
    created_at: createdAt,
    updated_at: at,
    merged_at: null,
    closed_at: null,
    ...changes,
  });
  const size = (): object => ({ additions: below(900), deletions: below(400), changed_files: 3, commits: 2 });
  const report = (event: string, action: string, more: object): Report => ({
    event,
    payload: { action, repository: { full_name: REPOSITORY }, ...more },
    receivedAt: at,
  });
  const reports: Report[] = [];
  if (chance(0.9))
    reports.push(report("pull_request", "opened", { sender: someone(), pull_request: pullRequest(size()) }));
  for (let more = below(5); more > 0; more--) {
    at = new Date(at.getTime() + 1000 * (1 + below(90_000)));
    const [id, user] = [number * 100 + more, someone()];
    reports.push(
      pick([
        () =>
          report("pull_request", "synchronize", {
            before: `a${id}`,
            after: `b${id}`,
            sender: user,
            pull_request: pullRequest(size()),
          }),
        () =>
          report("pull_request_review", "submitted", {
            sender: user,
            review: { id, state: pick(["approved", "commented", "changes_requested"]), submitted_at: at, user },
            pull_request: pullRequest(),
          }),
        () =>
          report("issue_comment", "created", {
            sender: user,
            comment: { id, created_at: at, user },
            issue: { ...pullRequest(), pull_request: { html_url: pullRequestUrl(number), merged_at: null } },
          }),
      ])(),
    );
  }
  if (chance(0.6)) {
    at = new Date(at.getTime() + 1000 * (1 + below(90_000)));
    const isMerged = chance(0.8);
    const ended = { ...size(), state: "closed", closed_at: at, merged: isMerged, merged_at: isMerged ? at : null };
    reports.push(report("pull_request", "closed", { sender: someone(), pull_request: pullRequest(ended) }));
  }
  return reports;
}

/** Has the service ingest a history through its feeds: late, repeated and in any order; some snapshots are too old. */
export async function ingest(
  world: World,
  random: SeededRandom,
  { runs, early, reports }: LargeHistory,
): Promise<void> {
  const { orchestrator: upstream, webhookIngress, service } = world;
  const deliver = ({ event, payload, receivedAt }: Report): void =>
    void webhookIngress.deliver({ teamUid: TEAM, provider: "github", event, action: "", body: payload, receivedAt });
  const settle = async (): Promise<void> => {
    await world.settle();
    await service.work.drain();
  };
  for (const run of early) upstream.runs.set(run.uid, run);
  for (const run of random.shuffled(early)) if (random.chance(0.6)) upstream.publish(run.uid, "created");
  for (const report of random.shuffled(reports).slice(0, reports.length / 4)) deliver(report);
  await settle();

  for (const run of runs) upstream.runs.set(run.uid, run);
  const stale = new Map(early.map((run) => [run.uid, run]));
  upstream.answer = (found) => found.map((run) => (random.chance(0.1) ? stale.get(run.uid)! : run));
  for (const run of random.shuffled(runs)) {
    upstream.publish(run.uid, "finished");
    upstream.publish(run.uid, "state_changed");
    if (random.chance(0.1)) upstream.publish(run.uid, "finished");
  }
  for (const report of random.shuffled(reports)) deliver(report);
  await settle();

  upstream.answer = (found) => found;
  for (const run of runs) upstream.publish(run.uid, "finished");
  await settle();
}

/** The end of a range that contains the whole history. */
export const AFTER_HISTORY = new Date(FIRST_MS + (DAYS + 2) * DAY_MS);
export const BEFORE_HISTORY = new Date(FIRST_MS - 2 * DAY_MS);
