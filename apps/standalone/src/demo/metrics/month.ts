import type { Activity, ModelCall, PullRequestFacts, RunSnapshot } from "@millwright/metrics/compose";
import { urlKey } from "@millwright/metrics/compose";
import { seededIndex, type RandomIndex } from "@millwright/statistics";

const DAYS = 30;
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** Weighted choices: an entry is picked in proportion to how often it is listed. */
const SOURCES = ["WEB_APP", "WEB_APP", "API", "SLACK", "SLACK", "SCHEDULED_AGENT"];
const REPOSITORIES = ["shop", "shop", "billing", "search", "docs"];
const SIZES = [30, 60, 200, 350, 700, 2_000];
/** Models with the minimum and maximum cost of one call in micro-dollars. */
const MODELS = [
  { modelId: "claude-opus-5-5", minMicros: 20_000, maxMicros: 250_000 },
  { modelId: "claude-opus-5-5", minMicros: 20_000, maxMicros: 250_000 },
  { modelId: "gpt-5.1", minMicros: 5_000, maxMicros: 90_000 },
] as const;

export type Team = {
  readonly teamUid: string;
  readonly factoryUid: string;
  readonly userUids: readonly string[];
  readonly foreman: AgentOfTeam;
  readonly implementer: AgentOfTeam;
};
export type AgentOfTeam = { readonly uid: string; readonly name: string };
export type Month = { readonly runs: readonly RunSnapshot[]; readonly pullRequests: readonly PullRequestFacts[] };

/** Returns the simulated work of a team in the thirty days before `end`. The same seed and team give the same work. */
export function simulateMonth(team: Team, seed: number, end: Date): Month {
  const random = seededIndex(seed);
  const runs: RunSnapshot[] = [];
  const pullRequests: PullRequestFacts[] = [];
  for (let day = 0; day < DAYS; day++) {
    const beganMs = end.getTime() - (DAYS - day) * DAY_MS;
    const isWeekend = [0, 6].includes(new Date(beganMs).getUTCDay());
    for (const userUid of team.userUids) {
      const taskCount = isWeekend ? (random(20) === 0 ? 1 : 0) : random(4);
      for (let n = 0; n < taskCount; n++) {
        const startedAt = new Date(beganMs + random(16 * 60) * MINUTE_MS);
        const number = pullRequests.length + 1;
        const { tree, facts } = simulateTask(random, team, { userUid, startedAt, number, end });
        runs.push(...tree);
        if (facts) pullRequests.push(facts);
      }
    }
  }
  return { runs, pullRequests };
}

type Task = { readonly userUid: string; readonly startedAt: Date; readonly number: number; readonly end: Date };

/** Returns a run tree of a foreman and one to three implementers. Most trees open a pull request. */
function simulateTask(
  random: RandomIndex,
  team: Team,
  { userUid, startedAt, number, end }: Task,
): { tree: RunSnapshot[]; facts?: PullRequestFacts } {
  const rootUid = randomUid(random);
  const source = pick(random, SOURCES);
  const owner = { rootRunUid: rootUid, factoryUid: team.factoryUid, source, creatorType: "user", creatorUid: userUid };
  const repository = `acme/${pick(random, REPOSITORIES)}`;
  const url = `https://github.example/${repository}/pull/${number}`;
  const opensPullRequest = random(10) < 7;
  const agents = [team.foreman, ...Array.from({ length: 1 + random(3) }, () => team.implementer)];
  const tree = agents.map((agent, index): RunSnapshot => {
    const uid = index === 0 ? rootUid : randomUid(random);
    const createdAt = later(startedAt, index * 2);
    const model = pick(random, MODELS);
    const modelCalls = Array.from({ length: 2 + random(8) }, (_, call): ModelCall =>
      simulateCall(random, model, later(createdAt, call), call),
    );
    const costOwner = { ...owner, runUid: uid, agentUid: agent.uid, modelId: model.modelId };
    const finishedAt = later(createdAt, 5 + random(40));
    const producesIt = opensPullRequest && index === agents.length - 1;
    return {
      uid,
      teamUid: team.teamUid,
      parentRunUid: index === 0 ? undefined : rootUid,
      conversationUid: uid,
      createdAt,
      finishedAt,
      source: index === 0 ? source : "ORCHESTRATION",
      state: pick(random, ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "FAILED"]),
      version: 5n,
      agentName: agent.name,
      agentType: index === 0 ? "FOREMAN" : "IMPLEMENT",
      harness: "oz",
      costOwner,
      inferenceOwner: costOwner,
      modelCalls,
      computeIntervals: [],
      pullRequests: producesIt
        ? [
            {
              url,
              urlKey: urlKey(url),
              provider: "GITHUB",
              repoFullName: repository,
              number,
              title: `Simulated change ${number}`,
              createdAt: finishedAt,
            },
          ]
        : [],
      personFollowUps: random(4) === 0 ? 1 : 0,
    };
  });
  if (!opensPullRequest) return { tree };
  return { tree, facts: simulateReview(random, { url, repository, number, openedAt: tree.at(-1)!.finishedAt!, end }) };
}

const simulateCall = (
  random: RandomIndex,
  { modelId, minMicros, maxMicros }: (typeof MODELS)[number],
  recordedAt: Date,
  call: number,
): ModelCall => ({
  callId: `call-${call}`,
  recordedAt,
  modelId,
  inputTokens: 1_000 + random(40_000),
  outputTokens: 100 + random(3_000),
  costMicros: BigInt(minMicros + random(maxMicros - minMicros)),
  priceVersion: 1,
});

type Opened = {
  readonly url: string;
  readonly repository: string;
  readonly number: number;
  readonly openedAt: Date;
  readonly end: Date;
};

/**
 * Returns the facts that the code host reports: reviews and comments of people, sometimes a push, and mostly a merge.
 * Nothing is later than `end`.
 */
function simulateReview(random: RandomIndex, { url, repository, number, openedAt, end }: Opened): PullRequestFacts {
  const reviewedAt = later(openedAt, 10 + random(600));
  const closedAt = later(reviewedAt, 5 + random(1_500));
  const isMerged = random(10) < 8 && closedAt < end;
  const person = { actorLogin: `person-${random(50)}`, isPerson: true, isDismissed: false };
  const activities: Activity[] = [
    {
      key: "opened",
      kind: "opened",
      actorLogin: "millwright[bot]",
      isPerson: false,
      isDismissed: false,
      occurredAt: openedAt,
    },
    {
      key: "review",
      kind: random(3) === 0 ? "review_changes_requested" : "review_approved",
      ...person,
      occurredAt: reviewedAt,
    },
    ...Array.from({ length: random(3) }, (_, n): Activity => ({
      key: `comment ${n}`,
      kind: "comment",
      ...person,
      occurredAt: later(reviewedAt, n),
    })),
    ...(random(5) === 0
      ? [{ key: "push", kind: "code_push", ...person, occurredAt: later(reviewedAt, 3) } satisfies Activity]
      : []),
  ];
  const updatedAt = isMerged ? closedAt : openedAt;
  const size = pick(random, SIZES);
  return {
    pullRequest: {
      provider: "GITHUB",
      url,
      repoFullName: repository,
      prNumber: number,
      updatedAt,
      authorLogin: "millwright[bot]",
      openedAt,
      mergedAt: isMerged ? closedAt : null,
      status: { state: isMerged ? "merged" : "open", title: `Simulated change ${number}`, closedAt: null },
      size: {
        additions: size + random(size),
        deletions: random(size),
        changedFiles: 1 + random(12),
        numCommits: 1 + random(5),
      },
    },
    activities: activities.filter(({ occurredAt }) => occurredAt < end),
  };
}

const later = (at: Date, minutes: number): Date => new Date(at.getTime() + minutes * MINUTE_MS);
const pick = <T>(random: RandomIndex, from: readonly T[]): T => from[random(from.length)]!;

/** Returns a version 4 uuid. */
function randomUid(random: RandomIndex): string {
  const hex = Array.from({ length: 30 }, () => random(16).toString(16)).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(12, 15)}-8${hex.slice(15, 18)}-${hex.slice(18, 30)}`;
}
