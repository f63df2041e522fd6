import { createHash, randomInt } from "node:crypto";
import { openHistoryImport, type HistoryImport } from "@millwright/metrics/compose";
import type { Measured } from "../results.ts";
import { round } from "../samples.ts";
import type { FactoryOfTeam } from "./metrics-rows.ts";

type Run = Parameters<HistoryImport["storeRuns"]>[0][number];

const RUNS = 4_000;
/** Runs per transaction, as in the metrics service. */
const BATCH = 200;
const CALLS = 9;
/** Facts of a run: its creation, its end, its model calls and its compute interval. */
const FACTS_PER_RUN = 2 + CALLS + 1;
const RUNS_PER_PULL_REQUEST = 10;
const MINUTE_MS = 60_000;

/**
 * Measures the rate at which the service stores new runs. Each run is stored once while it is in progress, with half of
 * its model calls, and once after its end. A fact is a change of state, a model call, a compute interval or a pull
 * request.
 */
export async function measureFacts(databaseUrl: string, factory: FactoryOfTeam, among: string): Promise<Measured[]> {
  const service = openHistoryImport(databaseUrl);
  try {
    const salt = randomInt(2_000_000, 2_000_000_000); // facts that are already stored would measure nothing
    const beganMs = performance.now();
    for (let first = 0; first < RUNS; first += BATCH) {
      const numbers = Array.from({ length: BATCH }, (_, index) => first + index);
      await service.storeRuns(numbers.map((n) => working(factory, salt, n)));
      await service.storeRuns(numbers.map((n) => finished(factory, salt, n)));
    }
    const seconds = (performance.now() - beganMs) / 1000;
    const facts = RUNS * FACTS_PER_RUN + RUNS / RUNS_PER_PULL_REQUEST;
    const rate = (what: string, count: number): Measured => ({
      what: `${what}, ${among}`,
      who: "millwright",
      perSecond: round(count / seconds),
    });
    return [rate("snapshots of runs stored", 2 * RUNS), rate("facts stored", facts)];
  } finally {
    await service.close();
  }
}

/** Returns the MD5 of a text, which PostgreSQL accepts as a UUID. */
const uid = (text: string): string => createHash("md5").update(text).digest("hex");

function finished({ factoryUid, teamUid }: FactoryOfTeam, salt: number, n: number): Run {
  const runUid = uid(`${salt} ${n}`);
  const createdAt = new Date(Date.now() - 10 * MINUTE_MS);
  const finishedAt = new Date(createdAt.getTime() + 5 * MINUTE_MS);
  const url = `https://github.com/acme/shop-${n % 7}/pull/${salt + n}`;
  const owner = {
    ...{ runUid, rootRunUid: runUid, factoryUid, source: "API", creatorType: "user", creatorUid: `user-${n % 50}` },
    ...{ agentUid: `agent-${n % 7}`, modelId: `model-${n % 4}` },
  };
  return {
    uid: runUid,
    teamUid,
    parentRunUid: undefined,
    conversationUid: runUid,
    createdAt,
    finishedAt,
    source: owner.source,
    state: "SUCCEEDED",
    version: 2n,
    agentName: `Agent ${n % 7}`,
    agentType: "IMPLEMENT",
    harness: "oz",
    costOwner: owner,
    inferenceOwner: owner,
    modelCalls: Array.from({ length: CALLS }, (_, call) => ({
      callId: `${runUid} ${call}`,
      recordedAt: createdAt,
      modelId: owner.modelId,
      inputTokens: 1_000,
      outputTokens: 200,
      costMicros: 5_000n,
      priceVersion: 1,
    })),
    computeIntervals: [
      { executionId: runUid, attempt: 1, startedAt: createdAt, endedAt: finishedAt, vcpus: 2, memoryGb: 4 },
    ],
    pullRequests:
      n % RUNS_PER_PULL_REQUEST === 0
        ? [
            {
              ...{ url, urlKey: url.slice("https://".length), provider: "GITHUB", repoFullName: `acme/shop-${n % 7}` },
              ...{ number: salt + n, title: `Change ${n}`, createdAt: finishedAt },
            },
          ]
        : [],
    personFollowUps: 0,
  };
}

function working(factory: FactoryOfTeam, salt: number, n: number): Run {
  const run = finished(factory, salt, n);
  const modelCalls = run.modelCalls.slice(0, Math.ceil(CALLS / 2));
  return {
    ...run,
    finishedAt: undefined,
    state: "INPROGRESS",
    version: 1n,
    modelCalls,
    computeIntervals: [],
    pullRequests: [],
  };
}
