import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { orchestrator } from "@millwright/contracts";
import { newUid } from "@millwright/ids";

/** A snapshot of a run, as the orchestrator returns it. */
export type FakeRun = orchestrator.RunFacts;

type Dated<T, K extends string> = Partial<Omit<T, K>> & Partial<Record<K, Date>>;
type Init<S extends Parameters<typeof create>[0]> = Omit<MessageInitShape<S>, "$typeName">;

export type RunInit = Dated<Init<typeof orchestrator.RunFactsSchema>, "createdAt" | "finishedAt"> & {
  readonly teamUid: string;
  /** Of a root; a run below a parent is of the parent's factory. */
  readonly factoryUid?: string;
  readonly parent?: FakeRun;
  /** The earliest run of the same conversation: the inference belongs to it. */
  readonly continues?: FakeRun;
  readonly creatorType?: string;
  readonly creatorUid?: string;
};

const CREATED_AT = new Date("2026-11-18T09:00:00.000Z");

/** Returns a snapshot of a new run that is in progress: a root of a factory, unless it has a parent. */
export function runSnapshot({
  teamUid,
  factoryUid = newUid(),
  parent,
  continues,
  creatorType = "user",
  creatorUid = newUid(),
  createdAt = CREATED_AT,
  finishedAt,
  ...init
}: RunInit): FakeRun {
  const uid = init.uid ?? newUid();
  const run = create(orchestrator.RunFactsSchema, {
    uid,
    ownerType: "team",
    ownerUid: teamUid,
    rootRunUid: parent?.rootRunUid ?? uid,
    parentRunUid: parent?.uid ?? "",
    conversationUid: continues?.conversationUid ?? newUid(),
    source: "API",
    state: "INPROGRESS",
    version: 1n,
    agentUid: newUid(),
    agentName: "builder",
    agentType: "IMPLEMENT",
    modelId: "model-large",
    harness: "claude",
    ...init,
    createdAt: timestampFromDate(createdAt),
    ...(finishedAt && { finishedAt: timestampFromDate(finishedAt) }),
  });
  const ofRoot = parent?.costOwner ?? { factoryUid, source: run.source, creatorType, creatorUid };
  run.costOwner ??= create(orchestrator.CostOwnerSchema, {
    runUid: uid,
    rootRunUid: run.rootRunUid,
    factoryUid: ofRoot.factoryUid,
    source: ofRoot.source,
    creatorType: ofRoot.creatorType,
    creatorUid: ofRoot.creatorUid,
    agentUid: run.agentUid,
    modelId: run.modelId,
  });
  run.inferenceOwner ??= continues?.costOwner ?? run.costOwner;
  return run;
}

/** Ends a run in place. */
export function finishRun(run: FakeRun, finishedAt: Date, state = "SUCCEEDED"): void {
  run.finishedAt = timestampFromDate(finishedAt);
  run.state = state;
}

/** Returns a priced model call. */
export const modelCall = ({
  recordedAt = CREATED_AT,
  ...init
}: Dated<Init<typeof orchestrator.ModelCallSchema>, "recordedAt"> = {}): orchestrator.ModelCall =>
  create(orchestrator.ModelCallSchema, {
    callId: newUid(),
    modelId: "model-large-2",
    inputTokens: 1_000n,
    outputTokens: 100n,
    costMicros: 4_500n,
    priceVersion: 1,
    ...init,
    recordedAt: timestampFromDate(recordedAt),
  });

/** Returns the time that an attempt used a sandbox: ten minutes of 2 vCPUs and 4 GB. */
export const computeInterval = ({
  startedAt = CREATED_AT,
  endedAt = new Date(startedAt.getTime() + 600_000),
  ...init
}: Dated<
  Init<typeof orchestrator.ComputeIntervalSchema>,
  "startedAt" | "endedAt"
> = {}): orchestrator.ComputeInterval =>
  create(orchestrator.ComputeIntervalSchema, {
    executionId: 1n,
    attempt: 1,
    vcpus: 2,
    memoryGb: 4,
    ...init,
    startedAt: timestampFromDate(startedAt),
    endedAt: timestampFromDate(endedAt),
  });

/** Returns a pull request that a run has produced. */
export const producedPullRequest = ({
  createdAt = CREATED_AT,
  ...init
}: Dated<Init<typeof orchestrator.ProducedPullRequestSchema>, "createdAt"> = {}): orchestrator.ProducedPullRequest =>
  create(orchestrator.ProducedPullRequestSchema, {
    url: "https://github.com/acme/shop/pull/7",
    codeHostKind: "github",
    repository: "acme/shop",
    number: 7,
    title: "Fix the build",
    ...init,
    createdAt: timestampFromDate(createdAt),
  });
