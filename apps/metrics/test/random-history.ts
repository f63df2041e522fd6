import { clone } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { orchestrator } from "@millwright/contracts";
import { uidOf } from "@millwright/ids";
import { seededRandom } from "@millwright/testing";
import {
  computeInterval,
  finishRun,
  modelCall,
  producedPullRequest,
  runSnapshot,
  type FakeRun,
} from "./run-samples.ts";
import { NOW, TEAM, type World } from "./setup.ts";

/** What happens to a run at a time. `happened`: the event of it; absent: none. */
export type Step = {
  readonly at: Date;
  readonly run: FakeRun;
  readonly happened?: "created" | "state_changed" | "finished";
};

const URLS = [
  "https://github.com/acme/shop/pull/7",
  "https://GitHub.com/Acme/Shop/pull/7/",
  "https://github.com/acme/shop/pull/8",
  "https://github.com/acme/web/pull/1#top",
  "https://git.acme.test/a/b/-/merge_requests/3",
];

export type HistoryOptions = {
  readonly factoryUids: readonly string[];
  readonly steps?: number;
  /** Whether prices of model calls arrive later, which the ledger shows as adjustments. */
  readonly hasLatePrices?: boolean;
};

/**
 * Makes the history of run trees of some factories: runs that continue conversations, usage with and without prices,
 * pull requests that several trees produce. Every step has the complete snapshot of its run, as the orchestrator
 * returns it after that step.
 */
export function randomHistory(
  seed: number,
  { factoryUids, steps = 120, hasLatePrices = false }: HistoryOptions,
): Step[] {
  const random = seededRandom(seed);
  const runs: FakeRun[] = [];
  const history: Step[] = [];
  let [now, count] = [NOW, 0];
  const uid = (): string => uidOf(`${seed} ${(count += 1)}`);
  const record = (run: FakeRun, happened?: Step["happened"]): void => {
    if (happened && happened !== "created") run.version += 1n;
    history.push({ at: now, run: clone(orchestrator.RunFactsSchema, run), happened });
  };

  function create(): void {
    const parent = runs.length > 0 && random.chance(0.5) ? random.pick(runs) : undefined;
    const factoryUid = parent?.costOwner!.factoryUid ?? random.pick(factoryUids);
    const earlier = runs.filter(
      (run) => run.costOwner!.factoryUid === factoryUid && run.inferenceOwner!.runUid === run.uid,
    );
    const continues = earlier.length > 0 && random.chance(0.3) ? random.pick(earlier) : undefined;
    const run = runSnapshot({
      uid: uid(),
      teamUid: TEAM,
      factoryUid,
      createdAt: now,
      state: "QUEUED",
      source: random.pick(["API", "SLACK"]),
      agentUid: uidOf(random.pick(["a", "b"])),
      modelId: random.pick(["", "model-large"]),
      creatorUid: uidOf("creator"),
      ...(parent && { parent }),
      ...(continues && { continues }),
      ...(!continues && { conversationUid: uid() }),
    });
    runs.push(run);
    record(run, "created");
  }

  function use(run: FakeRun): void {
    const recordedAt = new Date(now.getTime() - random.below(5_000));
    const kind = random.below(5);
    if (kind <= 1) {
      run.modelCalls.push(
        modelCall({
          callId: uid(),
          recordedAt,
          costMicros: random.chance(0.2) ? undefined : BigInt(random.below(1_000_000)),
        }),
      );
    } else if (kind === 2) {
      const startedAt = new Date(now.getTime() - random.below(90 * 60_000));
      const shape = { vcpus: random.pick([0, 0.5, 2]), memoryGb: random.pick([0, 1.5, 4]) };
      run.computeIntervals.push(
        computeInterval({ executionId: BigInt((count += 1)), startedAt, endedAt: now, ...shape }),
      );
    } else if (kind === 3) {
      run.pullRequests.push(
        producedPullRequest({ url: random.pick(URLS), createdAt: recordedAt, additions: random.below(500) }),
      );
    } else run.personFollowUps += 1;
    const unpriced = run.modelCalls.find(({ costMicros }) => costMicros === undefined);
    if (hasLatePrices && unpriced && random.chance(0.5))
      Object.assign(unpriced, { costMicros: BigInt(random.below(1_000_000)), priceVersion: 2 });
    record(run);
  }

  while (history.length < steps) {
    now = new Date(now.getTime() + random.below(20_000));
    const run = runs.length > 0 && random.chance(0.85) ? random.pick(runs) : undefined;
    if (!run) create();
    else if (run.state === "QUEUED") {
      run.state = "INPROGRESS";
      record(run, "state_changed");
    } else if (run.state === "INPROGRESS" && random.chance(0.15)) {
      finishRun(run, now, random.pick(["SUCCEEDED", "FAILED"]));
      record(run, "finished");
    } else if (!run.finishedAt || now.getTime() - timestampDate(run.finishedAt).getTime() < 100_000) use(run);
  }
  return history;
}

/** Applies a step to the orchestrator, whose clock is at its time. */
export function play({ orchestrator: upstream, clock }: World, { at, run, happened }: Step): void {
  clock.set(at);
  upstream.runs.set(run.uid, run);
  if (happened) upstream.publish(run.uid, happened);
}

/** Returns the last snapshot of every run of a history. */
export const finalRuns = (history: readonly Step[]): FakeRun[] => [
  ...new Map(history.map(({ run }) => [run.uid, run])).values(),
];
