import type { DefinitionStore } from "../../catalog/store/definition-store.ts";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { orchestrator } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import { allowServices } from "@millwright/rpc";
import type { IdentifiedRunner } from "../../catalog/domain/definition-part.ts";
import { totalsOf, type ScoredRun } from "../domain/scored-run.ts";
import { requestUsage } from "../../catalog/domain/usage.ts";
import { describeScoredRuns, type DescribeScoredRunsDeps } from "../usecases/describe-scored-runs.ts";
import { getRunEvidence, type GetRunEvidenceDeps } from "../usecases/get-run-evidence.ts";
import { getRunRepositories, type GetRunRepositoriesDeps } from "../usecases/get-run-repositories.ts";
import { resolveCommits, type ResolveCommitsDeps } from "../usecases/resolve-commits.ts";
import { requireService } from "../../runs/rpc/require-service.ts";
import { artifactMessage } from "../../runs/rpc/run-messages.ts";

type FactoryRunner = IdentifiedRunner & { readonly factoryUid: string };

export type EvidenceRoutesDeps = DescribeScoredRunsDeps &
  GetRunEvidenceDeps &
  GetRunRepositoriesDeps &
  ResolveCommitsDeps & { readonly definitions: Pick<DefinitionStore, "runnersOf"> };

const SCORING = ["scoring"];
export const evidenceAllowList = allowServices(orchestrator.EvidenceService, {
  describeRuns: SCORING,
  getRunEvidence: SCORING,
  getRunRepositories: SCORING,
  listRunners: SCORING,
  resolveCommits: SCORING,
});

/** Registers EvidenceService, with which the scoring service reads runs. */
export function evidenceRoutes(router: ConnectRouter, deps: EvidenceRoutesDeps): void {
  router.service(orchestrator.EvidenceService, {
    async describeRuns({ runUids }, context) {
      requireService(context);
      return { runs: (await describeScoredRuns(deps, runUids)).map(scoredRunMessage) };
    },
    async getRunEvidence({ runUid }, context) {
      requireService(context);
      const { run, artifacts, ...texts } = await getRunEvidence(deps, runUid);
      return { ...texts, run: scoredRunMessage(run), artifacts: artifacts.map(artifactMessage) };
    },
    async getRunRepositories({ runUid }, context) {
      requireService(context);
      return { repositories: [...(await getRunRepositories(deps, runUid))] };
    },
    async listRunners({ teamUid }, context) {
      requireService(context);
      if (!isUuid(teamUid)) throw notFound("team");
      return { runners: (await deps.definitions.runnersOf(teamUid)).map(runnerMessage) };
    },
    async resolveCommits({ teamUid, repositories }, context) {
      requireService(context);
      if (!isUuid(teamUid)) throw notFound("team");
      return { repositories: await resolveCommits(deps, teamUid, repositories) };
    },
  });
}

const runnerMessage = ({
  uid,
  formerUid,
  factoryUid,
  name,
  dockerImage,
  setupCommands,
  os,
  arch,
  vcpus,
  memoryGb,
}: FactoryRunner) => ({
  uid,
  formerUid,
  factoryUid,
  name,
  content: {
    docker_image: dockerImage,
    setup_commands: [...setupCommands],
    os,
    ...omitUndefined({ arch: arch || undefined, vcpus, memory_gb: memoryGb }),
  },
});

const scoredRunMessage = ({
  run,
  ancestorAgentUids,
  hasConversation,
  hasWorkspace,
  usage,
}: ScoredRun): orchestrator.ScoredRun => {
  const totals = totalsOf(usage);
  return create(orchestrator.ScoredRunSchema, {
    uid: run.uid,
    ownerType: run.owner.type,
    ownerUid: run.owner.uid,
    factoryUid: run.factoryUid ?? "",
    agentUid: run.agentUid ?? "",
    ancestorAgentUids: [...ancestorAgentUids],
    source: run.source,
    state: run.state,
    version: BigInt(run.version),
    conversationUid: run.conversationUid,
    hasConversation,
    title: run.title,
    creatorUid: run.creatorUid,
    createdAt: timestampFromDate(run.createdAt),
    runTimeMs: BigInt(run.runTimeMs),
    costMicros: totals.costMicros,
    totalTokens: BigInt(totals.tokens),
    errorCode: run.status?.errorCode ?? "",
    hasWorkspace,
    ...omitUndefined({
      startedAt: run.startedAt && timestampFromDate(run.startedAt),
      finishedAt: run.finishedAt && timestampFromDate(run.finishedAt),
      requestUsage: requestUsage(usage),
    }),
  });
};
