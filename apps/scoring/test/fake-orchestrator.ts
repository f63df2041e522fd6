import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { JsonObject } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { isMember, type Caller } from "@millwright/caller";
import { events, orchestrator } from "@millwright/contracts";
import { DomainError, notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices, callerOf } from "@millwright/rpc";
import { serveFeed, type FakeEvent } from "@millwright/testing";

type Described = Partial<Omit<orchestrator.ScoredRun, "$typeName" | "$unknown">>;
type Evidence = Partial<
  Pick<orchestrator.GetRunEvidenceResponse, "prompt" | "finalMessage" | "conversationJson" | "diff">
>;

/**
 * A run. `described` is what EvidenceService returns for it. `request` and `caller` are set for runs that the scoring
 * service created.
 */
export type FakeRun = {
  uid: string;
  teamUid: string;
  described: Described;
  evidence: Evidence;
  repositories?: { owner: string; repo: string; commit: string }[];
  request?: orchestrator.RunRequest;
  caller?: Caller;
  causeKey?: string;
};

export const MODELS = ["judge-large", "judge-small"];
const FINISHED_AT = timestampFromDate(new Date("2026-11-20T09:00:00.000Z"));
const TERMINAL = ["SUCCEEDED", "FAILED", "ERROR", "CANCELLED"];

/** In-memory implementation of runs, models and the run feed. */
export class FakeOrchestrator {
  static readonly allow = {
    ...allowServices(events.EventFeedService, { read: ["scoring"] }),
    ...allowServices(orchestrator.RunService, { createRuns: ["scoring"], getRun: ["scoring"], cancelRun: ["scoring"] }),
    ...allowServices(orchestrator.CatalogService, {
      listModels: ["scoring"],
      getEnvironment: ["scoring"],
      listSkills: ["scoring"],
    }),
    ...allowServices(orchestrator.EvidenceService, {
      describeRuns: ["scoring"],
      getRunEvidence: ["scoring"],
      getRunRepositories: ["scoring"],
      listRunners: ["scoring"],
      resolveCommits: ["scoring"],
    }),
  };
  readonly runs = new Map<string, FakeRun>();
  /** Uids of cancelled runs, in the order of the calls. */
  readonly cancelled: string[] = [];
  readonly feed: FakeEvent[] = [];
  /** Public configurations by uid. */
  readonly environments = new Map<string, JsonObject>();
  readonly skills: { name: string; body: string }[] = [];
  /** Runners by uid. */
  readonly runners = new Map<string, { name: string; content: JsonObject }>();
  /** Commits by "owner/repo@ref". */
  readonly commits = new Map<string, string>();
  /** Called before refs are resolved; may throw. */
  beforeResolve: () => Promise<void> | void = () => {};
  /** Called before runs are created; may throw. */
  beforeCreate: (requests: readonly orchestrator.RunRequest[]) => Promise<void> | void = () => {};
  beforeCancel: (runUid: string) => Promise<void> | void = () => {};
  /** Called before runs are described. */
  beforeDescribe: (runUids: readonly string[]) => Promise<void> | void = () => {};
  /** Called after runs were created, before the response. */
  beforeResponse: (runUids: readonly string[]) => Promise<void> | void = () => {};
  /** Whether created runs are reported as waiting for capacity. */
  isAtCapacity = false;

  /** Adds a succeeded run of an agent, with a conversation. */
  aRun({ teamUid, evidence = {}, ...described }: { teamUid: string; evidence?: Evidence } & Described): FakeRun {
    const uid = newUid();
    const run: FakeRun = {
      uid,
      teamUid,
      described: {
        uid,
        ownerType: "team",
        ownerUid: teamUid,
        source: "API",
        state: "SUCCEEDED",
        version: 4n,
        conversationUid: newUid(),
        hasConversation: true,
        title: "Fix the build",
        creatorUid: newUid(),
        runTimeMs: 61_000n,
        ...described,
      },
      evidence: { prompt: "Fix the build.", finalMessage: "Done.", conversationJson: "[]", ...evidence },
    };
    if (TERMINAL.includes(run.described.state!)) run.described.finishedAt ??= FINISHED_AT;
    this.runs.set(uid, run);
    return run;
  }

  /** Ends a run and publishes the event. Errors: run_not_found · run_already_finished. */
  finish(uid: string, state = "SUCCEEDED", errorCode = ""): void {
    const run = this.#get(uid);
    if (TERMINAL.includes(run.described.state!))
      throw new DomainError({
        kind: "invalid_argument",
        reason: "run_already_finished",
        message: "The run has finished.",
      });
    run.described = {
      ...run.described,
      state,
      errorCode,
      version: run.described.version! + 1n,
      finishedAt: FINISHED_AT,
    };
    this.publishFinished(uid);
  }

  /** Publishes the event of a finished run. */
  publishFinished(uid: string): void {
    const { teamUid, described } = this.#get(uid);
    this.feed.push({
      type: "millwright.run.finished.v1",
      entityUid: uid,
      entityVersion: Number(described.version),
      teamUid,
      payload: {
        run_uid: uid,
        root_run_uid: uid,
        conversation_uid: described.conversationUid!,
        source: described.source!,
        state: described.state!,
        ...(described.errorCode && { error_code: described.errorCode }),
      },
    });
  }

  routes(router: ConnectRouter): void {
    router.service(orchestrator.RunService, {
      createRuns: async ({ runs: requests }, context) => {
        await this.beforeCreate(requests);
        const created = requests.map((request) => this.#create(request, callerOf(context)));
        await this.beforeResponse(created.map(({ run }) => run.uid));
        return { runs: created };
      },
      getRun: async ({ runUid }, context) => {
        const run = this.#get(runUid);
        const caller = callerOf(context);
        if (caller.principal.type !== "service" && !isMember(caller, run.teamUid)) throw notFound("run");
        const { state, title, source, factoryUid } = run.described;
        return {
          run: {
            uid: run.uid,
            state: state!,
            title: title!,
            source: source!,
            ownerType: "team",
            ownerUid: run.teamUid,
            prompt: run.evidence.prompt!,
            metadata: run.request?.metadata ?? {},
            factoryUid,
          },
        };
      },
      cancelRun: async ({ runUid }) => {
        await this.beforeCancel(runUid);
        this.finish(runUid, "CANCELLED");
        this.cancelled.push(runUid);
        return {};
      },
    });
    router.service(orchestrator.CatalogService, {
      listModels: async () => ({ defaultModelId: MODELS[0]!, models: MODELS.map((id) => ({ id })) }),
      getEnvironment: async ({ uid }) => {
        const config = this.environments.get(uid);
        if (!config) throw notFound("environment");
        return { environment: { uid, config } };
      },
      listSkills: async () => ({
        skills: this.skills.map(({ name, body }) => ({
          name,
          variants: [{ description: `About ${name}`, basePrompt: body }],
        })),
      }),
    });
    router.service(orchestrator.EvidenceService, {
      describeRuns: async ({ runUids }) => {
        await this.beforeDescribe(runUids);
        return { runs: runUids.flatMap((uid) => this.runs.get(uid)?.described ?? []) };
      },
      resolveCommits: async ({ repositories }) => {
        await this.beforeResolve();
        return {
          repositories: repositories.map(({ owner, repo, ref }) => ({
            owner,
            repo,
            commit: this.#commit(owner, repo, ref),
          })),
        };
      },
      listRunners: async () => ({
        runners: [...this.runners].map(([uid, { name, content }]) => ({ uid, formerUid: uid, name, content })),
      }),
      getRunRepositories: async ({ runUid }) => ({ repositories: this.#get(runUid).repositories ?? [] }),
      getRunEvidence: async ({ runUid }) => ({ ...this.#get(runUid).evidence, run: this.#get(runUid).described }),
    });
    serveFeed(router, "0199a000-0000-7000-8000-000000000000", this.feed);
  }

  /** Resets all state. */
  clear(): void {
    this.runs.clear();
    this.environments.clear();
    this.commits.clear();
    this.skills.length = 0;
    this.runners.clear();
    this.beforeResolve = () => {};
    this.cancelled.length = this.feed.length = 0;
    this.beforeCreate = this.beforeCancel = this.beforeResponse = () => {};
    this.isAtCapacity = false;
  }

  #commit(owner: string, repo: string, ref: string): string {
    const commit = this.commits.get(`${owner}/${repo}@${ref}`);
    if (commit === undefined)
      throw new DomainError({
        kind: "not_found",
        reason: "ref_not_found",
        message: `${owner}/${repo} has no branch, tag or commit "${ref}".`,
      });
    return commit;
  }

  #get(uid: string): FakeRun {
    const run = this.runs.get(uid);
    if (!run) throw notFound("run");
    return run;
  }

  #create(request: orchestrator.RunRequest, caller: Caller) {
    const causeKey = request.causeKey ?? newUid();
    const known = [...this.runs.values()].find((run) => run.causeKey === causeKey && run.teamUid === request.ownerUid);
    if (known) return { run: { uid: known.uid }, created: false };
    const run = this.aRun({
      teamUid: request.ownerUid,
      factoryUid: request.factoryUid ?? "",
      agentUid: request.agentUid ?? "",
      source: request.source,
      state: "QUEUED",
      version: 1n,
      title: request.title ?? "",
    });
    Object.assign(run, { request, caller, causeKey });
    this.feed.push({
      type: "millwright.run.created.v1",
      entityUid: run.uid,
      teamUid: run.teamUid,
      cause: causeKey,
      payload: { run_uid: run.uid, source: request.source },
    });
    return { run: { uid: run.uid }, created: true, atCapacity: this.isAtCapacity };
  }
}
