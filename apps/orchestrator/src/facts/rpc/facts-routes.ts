import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { allowServices } from "@millwright/rpc";
import type { ComputeInterval, ModelCallFacts, ProducedPullRequest, RunFacts } from "../domain/run-facts.ts";
import { listRunFacts, type ListRunFactsDeps } from "../usecases/list-run-facts.ts";
import { walkRuns, type WalkRunsDeps } from "../usecases/walk-runs.ts";
import { requireService } from "../../runs/rpc/require-service.ts";

export type FactsRoutesDeps = ListRunFactsDeps & WalkRunsDeps;

const METRICS = ["metrics"];
export const factsAllowList = allowServices(orchestrator.FactsService, { listRunFacts: METRICS, walkRuns: METRICS });

/** Registers FactsService, with which the metrics service reads runs. */
export function factsRoutes(router: ConnectRouter, deps: FactsRoutesDeps): void {
  router.service(orchestrator.FactsService, {
    async listRunFacts({ runUids }, context) {
      requireService(context);
      return { runs: (await listRunFacts(deps, runUids)).map(factsMessage) };
    },
    async walkRuns({ pageSize, pageToken }, context) {
      requireService(context);
      const { runUids, nextPageToken } = await walkRuns(deps, pageSize, pageToken);
      return { runUids: [...runUids], nextPageToken };
    },
  });
}

const factsMessage = (facts: RunFacts): MessageInitShape<typeof orchestrator.RunFactsSchema> => ({
  ...facts,
  createdAt: timestampFromDate(facts.createdAt),
  finishedAt: facts.finishedAt && timestampFromDate(facts.finishedAt),
  version: BigInt(facts.version),
  modelCalls: facts.modelCalls.map(modelCallMessage),
  computeIntervals: facts.computeIntervals.map(intervalMessage),
  pullRequests: facts.pullRequests.map(pullRequestMessage),
});

const modelCallMessage = (call: ModelCallFacts): MessageInitShape<typeof orchestrator.ModelCallSchema> => ({
  callId: call.callId,
  modelId: call.modelId,
  recordedAt: timestampFromDate(call.recordedAt),
  ...omitUndefined({
    inputTokens: optionalInt(call.inputTokens),
    outputTokens: optionalInt(call.outputTokens),
    cacheReadTokens: optionalInt(call.cacheReadTokens),
    cacheWriteTokens: optionalInt(call.cacheWriteTokens),
    costMicros: call.costMicros,
    priceVersion: call.priceVersion,
  }),
});

const optionalInt = (value: number | undefined): bigint | undefined =>
  value === undefined ? undefined : BigInt(value);

const intervalMessage = ({
  startedAt,
  endedAt,
  executionId,
  ...interval
}: ComputeInterval): MessageInitShape<typeof orchestrator.ComputeIntervalSchema> => ({
  ...interval,
  executionId: BigInt(executionId),
  startedAt: timestampFromDate(startedAt),
  endedAt: timestampFromDate(endedAt),
});

const pullRequestMessage = ({
  kind,
  createdAt,
  ...pull
}: ProducedPullRequest): MessageInitShape<typeof orchestrator.ProducedPullRequestSchema> => ({
  ...pull,
  codeHostKind: kind,
  createdAt: timestampFromDate(createdAt),
});
