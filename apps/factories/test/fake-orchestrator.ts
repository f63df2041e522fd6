import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { definitions, events, orchestrator } from "@millwright/contracts";
import { DomainError, notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import { allowServices, callerOf, served } from "@millwright/rpc";
import { FakeOwner } from "./fake-owner.ts";

/** `isHidden`: no caller may view it. */
export type FakeRun = {
  isHidden?: boolean;
  uid: string;
  conversationUid: string;
  rootRunUid: string;
  parentRunUid?: string;
  version: number;
  teamUid: string;
  factoryUid: string;
  request?: orchestrator.RunRequest;
  state?: string;
  isLocal?: boolean;
  agentUid?: string;
  agentName?: string;
};

/** Runs in memory, with the orchestrator's idempotency and feed. */
export class FakeOrchestrator {
  static readonly allow = {
    ...allowServices(events.EventFeedService, { read: ["factories"] }),
    ...allowServices(orchestrator.RunService, {
      createRuns: ["factories"],
      getRun: ["factories"],
      getRunTitles: ["factories"],
    }),
    ...allowServices(orchestrator.ConversationService, {
      continueConversation: ["factories"],
      findConversationsByUrl: ["factories"],
      describeConversations: ["factories"],
    }),
    ...allowServices(orchestrator.CatalogService, { describePullRequests: ["factories"] }),
    ...allowServices(definitions.DefinitionOwnerService, {
      stageDefinition: ["factories"],
      discardDefinition: ["factories"],
      activateDefinition: ["factories"],
    }),
  };
  readonly owner = new FakeOwner("runner");
  readonly runs: FakeRun[] = [];
  readonly feed: { type: string; entityUid: string; entityVersion: bigint; teamUid: string; payload: JsonObject }[] =
    [];
  readonly #keys = new Map<string, { body: string; run: FakeRun }>();
  readonly cancelled: { runUid: string; tree: boolean; cause: string }[] = [];
  /** The cancelled runs by idempotency key. */
  readonly #cancelKeys = new Map<string, string>();
  readonly #causes = new Map<string, FakeRun>();
  /** The code host's data about pull requests or its error, and the queries that it received. */
  codeHost: Error | { labels?: string[]; authors?: string[]; baseBranches?: string[]; paths?: string[] } = {};
  readonly asked: string[] = [];
  /** Called before the code host responds. */
  beforeAsked: () => Promise<unknown> = async () => {};
  /** Thrown instead of creating runs. */
  refusal: Error | undefined;
  live = 0;
  /** Whether a factory was closed with its live runs. */
  closedWithRuns = false;
  /** The conversations that refer to a URL. */
  readonly about = new Map<string, string[]>();
  /** Conversations that another caller has taken over since they were read. */
  readonly taken = new Set<string>();
  /** The continuations of conversations: the run and its request. */
  readonly continued: { runUid: string; request: orchestrator.RunRequest }[] = [];
  /** Titles that the events do not contain, by run. */
  readonly titles = new Map<string, string>();
  readonly titlesAsked: string[][] = [];
  /** The maximum number of events in one response of the feed. */
  pageSize = 200;
  /** Called after a run was created, before the response is sent. */
  beforeAnswer: () => void = () => {};

  routes(router: ConnectRouter): void {
    router.service(definitions.DefinitionOwnerService, this.owner.service());
    router.service(orchestrator.RunService, {
      createRuns: async ({ runs: [request] }, context) => {
        if (!request) throw new Error("one run is asked for");
        const caller = callerOf(context);
        const body = JSON.stringify(request, (_key, value: unknown) =>
          typeof value === "bigint" ? String(value) : value,
        );
        const key = request.idempotencyKey && `${caller.principal.uid} ${request.idempotencyKey}`;
        if (this.refusal) throw this.refusal;
        const caused = request.causeKey ? this.#causes.get(request.causeKey) : undefined;
        if (caused)
          return { runs: [{ run: { uid: caused.uid, conversationUid: caused.conversationUid }, created: false }] };
        const known = key ? this.#keys.get(key) : undefined;
        if (known && known.body !== body)
          throw new DomainError({ kind: "conflict", reason: "idempotency_mismatch", message: "Other body." });
        const run =
          known?.run ??
          this.created({
            teamUid: request.ownerUid,
            factoryUid: request.factoryUid ?? "",
            request,
            origin: request.origin ?? "",
          });
        if (key) this.#keys.set(key, { body, run });
        if (request.causeKey) this.#causes.set(request.causeKey, run);
        this.beforeAnswer();
        return { runs: [{ run: { uid: run.uid, conversationUid: run.conversationUid }, created: !known }] };
      },
      getRun: async ({ runUid }) => {
        const run = this.#find(runUid);
        return { run: { uid: run.uid, factoryUid: run.factoryUid, metadata: run.request?.metadata ?? {} } };
      },
      closeFactory: async ({ withLiveRuns }) => {
        this.closedWithRuns ||= withLiveRuns;
        return { live: this.live };
      },
      cancelRun: async ({ runUid, tree, cause, idempotencyKey }) => {
        const run = this.#find(runUid);
        const known = this.#cancelKeys.get(idempotencyKey);
        if (known === runUid) return {};
        if (known !== undefined)
          throw new DomainError({ kind: "conflict", reason: "idempotency_mismatch", message: "Other run." });
        if (run.state === "CANCELLED")
          throw new DomainError({ kind: "invalid_argument", reason: "run_already_finished", message: "Over." });
        Object.assign(run, { state: "CANCELLED" });
        this.cancelled.push({ runUid, tree, cause });
        if (idempotencyKey !== "") this.#cancelKeys.set(idempotencyKey, runUid);
        return {};
      },
      getRunTitles: async ({ runUids }) => {
        this.titlesAsked.push([...runUids]);
        return {
          titles: Object.fromEntries(
            runUids.flatMap((uid) => (this.titles.has(uid) ? [[uid, this.titles.get(uid)!]] : [])),
          ),
        };
      },
    });
    router.service(orchestrator.ConversationService, {
      describeConversation: async ({ runUid }, context) => {
        const run = this.#find(runUid);
        if (!callerOf(context).teams.some(({ teamUid }) => teamUid === run.teamUid)) throw notFound("run");
        return { conversationUid: this.#find(run.rootRunUid).conversationUid };
      },
      continueConversation: async ({ run: request }) => {
        if (!request?.causeKey || !request.conversationUid) throw new Error("a conversation is continued for a cause");
        if (this.refusal) throw this.refusal;
        const known = this.#causes.get(request.causeKey);
        const newest = this.runs.findLast((one) => one.conversationUid === request.conversationUid);
        if (!newest || newest.teamUid !== request.ownerUid || this.taken.has(newest.conversationUid))
          throw notFound("conversation");
        const run =
          known ??
          (newest.state
            ? this.created({
                teamUid: request.ownerUid,
                factoryUid: request.factoryUid ?? "",
                conversationUid: newest.conversationUid,
                request,
                origin: request.origin ?? "",
              })
            : newest);
        this.#causes.set(request.causeKey, run);
        if (!known) this.continued.push({ runUid: run.uid, request });
        this.beforeAnswer();
        return { runUid: run.uid };
      },
      findConversationsByUrl: served(async ({ url }) => ({ conversationUids: this.about.get(url) ?? [] })),
      describeConversations: async ({ conversationUids, teamUid }, context) => ({
        conversations: conversationUids.flatMap((conversationUid) => {
          const bound = this.runs.filter(
            (one) => one.conversationUid === conversationUid && (!teamUid || one.teamUid === teamUid),
          );
          const run = bound.findLast(({ parentRunUid }) => !parentRunUid) ?? bound.at(-1);
          if (!run) return [];
          const isVisible = !run.isHidden && callerOf(context).teams.some((team) => team.teamUid === run.teamUid);
          return [
            {
              conversationUid,
              ...(isVisible
                ? {
                    runUid: run.uid,
                    version: run.version,
                    ownerType: "team",
                    ownerUid: run.teamUid,
                    creatorUid: "u-1",
                    metadata: run.request?.metadata ?? {},
                    factoryUid: run.factoryUid,
                    agentUid: run.agentUid,
                    agentName: run.agentName,
                  }
                : { hidden: true }),
            },
          ];
        }),
      }),
    });
    router.service(orchestrator.CatalogService, {
      describePullRequests: async ({ repository, numbers }) => {
        this.asked.push(`${repository} ${numbers.join(",")}`);
        await this.beforeAsked();
        if (this.codeHost instanceof Error) throw this.codeHost;
        return this.codeHost;
      },
    });
    router.service(events.EventFeedService, {
      read: async ({ after, limit }) => ({
        logUid: "0199a000-0000-7000-8000-000000000000",
        head: BigInt(this.feed.length),
        events: this.feed.slice(Number(after), Number(after) + Math.min(limit, this.pageSize)).map((event, index) => ({
          ...event,
          uid: newUid(),
          position: after + BigInt(index) + 1n,
          entity: "run",
          actorType: "user",
          actorUid: "u-1",
          requestId: "r-1",
          occurredAt: timestampFromDate(new Date()),
        })),
      }),
    });
  }

  /** Creates a run and appends its event. */
  created(
    given: Partial<FakeRun> & {
      origin?: string;
      parentRunUid?: string;
      retryOfRunUid?: string;
      title?: string;
      isUntitled?: boolean;
    },
  ): FakeRun {
    const uid = given.uid ?? newUid();
    const {
      conversationUid = newUid(),
      teamUid = "",
      factoryUid = "",
      request,
      origin,
      parentRunUid,
      retryOfRunUid,
      title,
      agentUid,
      agentName,
    } = given;
    const rootRunUid = given.rootRunUid ?? uid;
    const run: FakeRun = {
      uid,
      conversationUid,
      rootRunUid,
      version: 1,
      teamUid,
      factoryUid,
      parentRunUid,
      request,
      agentUid,
      agentName,
      isHidden: given.isHidden,
    };
    this.runs.push(run);
    const metadata = request?.metadata ?? {};
    this.#publish("created", run, {
      run_uid: uid,
      conversation_uid: conversationUid,
      root_run_uid: rootRunUid,
      source: "API",
      ...omitUndefined({
        title: given.isUntitled ? undefined : (title ?? (request?.title || request?.prompt || "A run")),
        factory_uid: factoryUid,
        origin,
        parent_run_uid: parentRunUid,
        retry_of_run_uid: retryOfRunUid,
        ticket_source: metadata["ticket_source"],
        ticket_id: metadata["ticket_source"] && (metadata["ticket_id"] ?? ""),
      }),
    });
    return run;
  }

  finished(run: FakeRun, state: string): void {
    run.version += 1;
    this.#publish("finished", run, {
      run_uid: run.uid,
      root_run_uid: run.rootRunUid,
      conversation_uid: run.conversationUid,
      state,
    });
  }

  #publish(past: string, run: FakeRun, payload: JsonObject): void {
    this.feed.push({
      type: `millwright.run.${past}.v1`,
      entityUid: run.uid,
      entityVersion: BigInt(run.version),
      teamUid: run.teamUid,
      payload,
    });
  }

  #find(uid: string): FakeRun {
    const run = this.runs.find((candidate) => candidate.uid === uid);
    if (!run) throw notFound("run");
    return run;
  }
}
