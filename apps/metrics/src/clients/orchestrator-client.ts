import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import { toProducedPullRequest, type RunSnapshot } from "../domain/run-snapshot.ts";

/** As many runs as are refreshed at once. */
const WALK_PAGE = 200;

/** Facts of runs. */
export function orchestratorClient(transport: Transport, signer: CallerSigner) {
  const facts = clientFor(orchestrator.FactsService, transport, { signer });
  return {
    /** Lists a page of the uids of all runs of teams, oldest first. */
    async walk(pageToken: string): Promise<{ runUids: string[]; nextPageToken: string }> {
      const caller = serviceCaller(signer.service, newUid());
      return facts.walkRuns({ pageSize: WALK_PAGE, pageToken }, call(caller));
    },

    /**
     * Returns complete snapshots of at most 200 runs. Left out: unknown runs, runs of no factory and runs that belong
     * to a person.
     */
    async readRuns(runUids: readonly string[]): Promise<RunSnapshot[]> {
      const { runs } = await facts.listRunFacts(
        { runUids: [...runUids] },
        call(serviceCaller(signer.service, newUid())),
      );
      return runs.flatMap((run) => toSnapshot(run) ?? []);
    },
  };
}

function toSnapshot(run: orchestrator.RunFacts): RunSnapshot | undefined {
  const { costOwner, inferenceOwner } = run;
  if (run.ownerType !== "team" || !costOwner || costOwner.factoryUid === "") return undefined;
  return {
    uid: run.uid,
    teamUid: run.ownerUid,
    parentRunUid: run.parentRunUid === "" ? undefined : run.parentRunUid,
    conversationUid: run.conversationUid,
    createdAt: dateOf(run.createdAt),
    finishedAt: run.finishedAt && timestampDate(run.finishedAt),
    source: run.source,
    state: run.state,
    version: run.version,
    agentName: run.agentName,
    agentType: run.agentType,
    harness: run.harness,
    costOwner,
    inferenceOwner: inferenceOwner ?? costOwner,
    modelCalls: run.modelCalls.map((each) => ({
      callId: each.callId,
      recordedAt: dateOf(each.recordedAt),
      modelId: each.modelId,
      inputTokens: numberOf(each.inputTokens),
      outputTokens: numberOf(each.outputTokens),
      cacheReadTokens: numberOf(each.cacheReadTokens),
      cacheWriteTokens: numberOf(each.cacheWriteTokens),
      costMicros: each.costMicros,
      priceVersion: each.priceVersion,
    })),
    computeIntervals: run.computeIntervals.map(({ executionId, attempt, startedAt, endedAt, vcpus, memoryGb }) => ({
      executionId: String(executionId),
      attempt,
      startedAt: dateOf(startedAt),
      endedAt: dateOf(endedAt),
      vcpus,
      memoryGb,
    })),
    pullRequests: run.pullRequests.map(({ createdAt, ...each }) =>
      toProducedPullRequest({ ...each, createdAt: dateOf(createdAt) }),
    ),
    personFollowUps: run.personFollowUps,
  };
}

const numberOf = (value: bigint | undefined): number | undefined => (value === undefined ? undefined : Number(value));

function dateOf(at: Timestamp | undefined): Date {
  if (!at) throw new Error("The orchestrator returned a fact without its time.");
  return timestampDate(at);
}
