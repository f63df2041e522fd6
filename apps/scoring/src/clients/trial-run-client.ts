import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller, type PrincipalType, type Verb } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { newUid, type TeamUid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { TrialRun } from "../domain/trial-run.ts";
import type { RunFacts } from "../usecases/start-attempts.ts";

/** A run with its usage. */
export type MeasuredRun = RunFacts & {
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly wallTimeMs: number;
  readonly usage: JsonObject | undefined;
};

type Behalf = { readonly teamUid: string; readonly creator: { readonly type: string; readonly uid: string } };

/** Returns the client that creates and cancels runs of trials on behalf of the person who launched the benchmark. */
export function trialRunClient(transport: Transport, signer: CallerSigner) {
  const runs = clientFor(orchestrator.RunService, transport, { signer });
  const evidence = clientFor(orchestrator.EvidenceService, transport, { signer });
  const onBehalfOf = (behalf: Behalf) => call(callerFor(signer.service, behalf));
  return {
    /**
     * Creates the run of an attempt, or returns the run that an earlier call with the same cause created. Errors: those
     * of CreateRuns.
     */
    async create(run: TrialRun): Promise<{ readonly runUid: string; readonly isAtCapacity: boolean }> {
      const { runs: created } = await runs.createRuns({ runs: [requestOf(run)] }, onBehalfOf(run));
      const [{ run: createdRun, atCapacity } = { run: undefined, atCapacity: false }] = created;
      if (!createdRun) throw new Error("The orchestrator returned no run.");
      return { runUid: createdRun.uid, isAtCapacity: atCapacity };
    },

    /**
     * Cancels the run and all its descendants. Errors: run_not_found, run_already_finished, run_pending (conflict,
     * retryable).
     */
    async cancelTree(behalf: Behalf, runUid: string, cause: string): Promise<void> {
      await runs.cancelRun({ runUid, tree: true, cause, idempotencyKey: `${cause} ${runUid}` }, onBehalfOf(behalf));
    },

    /** Returns the usage of runs, without unknown runs. */
    async describe(runUids: readonly string[]): Promise<MeasuredRun[]> {
      const { runs: described } = await evidence.describeRuns(
        { runUids: [...runUids] },
        call(serviceCaller(signer.service, newUid())),
      );
      return described.map((run) => ({
        uid: run.uid,
        version: Number(run.version),
        factoryUid: run.factoryUid,
        teamUid: run.ownerUid,
        agentUid: run.agentUid || null,
        conversationUid: run.conversationUid || null,
        title: run.title,
        costMicros: Number(run.costMicros),
        totalTokens: Number(run.totalTokens),
        wallTimeMs: Number(run.runTimeMs),
        usage: run.requestUsage,
      }));
    },
  };
}

export type TrialRunClient = ReturnType<typeof trialRunClient>;

const requestOf = (run: TrialRun) => ({
  title: run.title,
  prompt: run.prompt,
  ownerType: "team",
  ownerUid: run.teamUid,
  agentUid: run.agentUid,
  factoryUid: run.factoryUid,
  metadata: { ...run.metadata },
  source: "BENCHMARK_TRIAL",
  causeKey: run.causeKey,
  dispatcherConfig: run.dispatcherConfig,
  agentOverrides: run.agentOverrides,
  pinnedRepositories: run.repositories.map(({ owner, repo, commit }) => ({ owner, repo, commit })),
});

const TRIAL_VERBS = ["run.view", "run.create", "run.manage"] as const satisfies readonly Verb[];

/** Returns the caller that represents this service on behalf of the launcher, with only the verbs that trials need. */
function callerFor(service: string, { teamUid, creator }: Behalf): Caller {
  const self = serviceCaller(service, newUid(), { type: creator.type as PrincipalType, uid: creator.uid }, [
    { teamUid: teamUid as TeamUid, verbs: TRIAL_VERBS },
  ]);
  return creator.type === "user" ? { ...self, personal: ["run.view"] } : self;
}
