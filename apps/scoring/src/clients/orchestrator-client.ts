import { toJson } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import { JUDGE_SOURCE, type ScoredRun } from "../domain/eligibility.ts";
import type { RunEvidence } from "../domain/judge-evidence.ts";
import { ATTEMPT_METADATA, type JudgeRun } from "../domain/judge-run.ts";
import { callerFor, type Behalf } from "./acting-caller.ts";

/** A run with the members that decide whether it is scored, and its usage. */
export type RunDescription = ScoredRun & {
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly runTimeMs: number;
  /** Public `RequestUsage` document. */
  readonly usage: JsonObject | undefined;
  readonly errorCode: string;
  readonly hasWorkspace: boolean;
};

export type OrchestratorClient = ReturnType<typeof orchestratorClient>;

/** Returns the client for runs that are scored and for the runs that judge them. */
export function orchestratorClient(transport: Transport, signer: CallerSigner) {
  const runs = clientFor(orchestrator.RunService, transport, { signer });
  const evidence = clientFor(orchestrator.EvidenceService, transport, { signer });
  const self = () => call(serviceCaller(signer.service, newUid()));
  return {
    /** Checks that the caller can see a run. Errors: run_not_found (absent or not visible to the caller). */
    async requireVisible(caller: Caller, runUid: string): Promise<void> {
      await runs.getRun({ runUid }, call(caller));
    },

    /**
     * Returns the uid of the attempt that a judge run was created for, or undefined if the run is not a judge run.
     * Errors: run_not_found (absent or not visible to the caller).
     */
    async attemptOf(caller: Caller, runUid: string): Promise<string | undefined> {
      const { run } = await runs.getRun({ runUid }, call(caller));
      return run?.source === JUDGE_SOURCE ? run.metadata[ATTEMPT_METADATA] : undefined;
    },

    /** Returns descriptions of at most 500 runs, without unknown runs. */
    async describe(runUids: readonly string[]): Promise<RunDescription[]> {
      return (await evidence.describeRuns({ runUids: [...runUids] }, self())).runs.map(toDescription);
    },

    /** Returns a run with the evidence that a judge reads. Errors: run_not_found. */
    async evidence(runUid: string): Promise<RunDescription & RunEvidence> {
      const found = await evidence.getRunEvidence({ runUid }, self());
      if (!found.run) throw notFound("run");
      const { prompt, finalMessage, conversationJson, diff } = found;
      const artifacts = found.artifacts.map((artifact) => toJson(orchestrator.ArtifactSchema, artifact));
      return { ...toDescription(found.run), prompt, finalMessage, conversationJson, diff, artifacts };
    },

    /**
     * Creates the judge run of an attempt, or returns the run that an earlier call with the same cause created. Errors:
     * those of CreateRuns.
     */
    async createJudgeRun(behalf: Behalf, run: JudgeRun): Promise<string> {
      const { runs: created } = await runs.createRuns(
        { runs: [requestOf(run)] },
        call(callerFor(signer.service, behalf)),
      );
      return created[0]!.run!.uid;
    },

    /**
     * Cancels a run and its descendants. Errors: run_not_found, run_already_finished, run_pending (conflict,
     * retryable).
     */
    async cancel(teamUid: string, runUid: string, cause: string): Promise<void> {
      await runs.cancelRun(
        { runUid, tree: true, cause, idempotencyKey: `${cause} ${runUid}` },
        call(callerFor(signer.service, { teamUid })),
      );
    },
  };
}

const toDescription = (run: orchestrator.ScoredRun): RunDescription => ({
  uid: run.uid,
  ownerType: run.ownerType,
  ownerUid: run.ownerUid,
  factoryUid: run.factoryUid,
  agentUid: run.agentUid,
  ancestorAgentUids: run.ancestorAgentUids,
  source: run.source,
  state: run.state,
  version: Number(run.version),
  conversationUid: run.conversationUid,
  hasConversation: run.hasConversation,
  title: run.title,
  costMicros: Number(run.costMicros),
  totalTokens: Number(run.totalTokens),
  runTimeMs: Number(run.runTimeMs),
  usage: run.requestUsage,
  errorCode: run.errorCode,
  hasWorkspace: run.hasWorkspace,
});

const requestOf = (run: JudgeRun) => ({
  title: run.title,
  prompt: run.prompt,
  ownerType: "team",
  ownerUid: run.teamUid,
  factoryUid: run.factoryUid,
  source: run.source,
  causeKey: run.causeKey,
  config: run.config,
  attachments: run.files.map((file) => ({ ...file })),
  judge: run.judge && { scorerUid: run.judge.scorerUid, classifications: [...run.judge.classifications] },
  workspaceOfRunUid: run.workspaceOfRunUid,
  agentUid: run.agentUid,
  metadata: run.metadata && { ...run.metadata },
});
