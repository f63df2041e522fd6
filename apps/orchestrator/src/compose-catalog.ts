import type { ConnectRouter, HandlerContext, Transport } from "@connectrpc/connect";
import type { BlobStore } from "@millwright/blobs";
import { serviceCaller, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { orchestrator } from "@millwright/contracts";
import type { Database, Sql } from "@millwright/database";
import type { EventHandlers, EventLog } from "@millwright/events";
import { isUuid, newUid } from "@millwright/ids";
import { outboundRule, type OutboundRule } from "@millwright/outbound";
import type { Cursors } from "@millwright/paging";
import { allowServices, type CallerSigner } from "@millwright/rpc";
import type { WorkHandler } from "@millwright/work";
import { topics, type Wakeups } from "./storage/wakeups.ts";
import type { LiveTexts } from "./runs/live-texts.ts";
import { codeHosts, forgeReaders } from "./catalog/clients/code-hosts.ts";
import { identityClient } from "./catalog/clients/identity-client.ts";
import type { RepositoryRef } from "./catalog/domain/agent-config.ts";
import type { Job } from "./runs/domain/assignment.ts";
import type { ManagedMcpServers } from "./catalog/domain/mcp-servers.ts";
import type { PlatformProvider } from "./catalog/domain/model-providers.ts";
import { modelCatalogue, type ModelAliases } from "./catalog/domain/models.ts";
import type { ResolveRunRequest } from "./runs/domain/resolved-run.ts";
import type { RunListQuery, RunPosition } from "./runs/domain/run-list.ts";
import type { Owner, Run } from "./runs/domain/run.ts";
import type { ListSharedRuns } from "./runs/domain/session-sharing.ts";
import type { Timings } from "./runs/domain/timings.ts";
import type { WorkerSession } from "./runs/domain/worker-session.ts";
import { DEFINITION_ACTIVATED, onDefinitionActivated } from "./catalog/events/on-definition-activated.ts";
import { budgetEvents } from "./budgets/events/budget-events.ts";
import { artifactRoutes } from "./artifacts/rpc/artifact-routes.ts";
import { budgetRoutes } from "./budgets/rpc/budget-routes.ts";
import { modelPriceRoutes } from "./catalog/rpc/model-price-routes.ts";
import { catalogRoutes } from "./catalog/rpc/catalog-routes.ts";
import { definitionAllowList, definitionRoutes } from "./catalog/rpc/definition-routes.ts";
import { evidenceAllowList, evidenceRoutes } from "./evidence/rpc/evidence-routes.ts";
import { factsAllowList, factsRoutes } from "./facts/rpc/facts-routes.ts";
import { runMessage } from "./runs/rpc/run-messages.ts";
import { conversationViewMethods } from "./conversations/rpc/conversation-view-routes.ts";
import { runEventRoutes } from "./runs/rpc/run-event-routes.ts";
import { runViewMethods } from "./runs/rpc/run-view-routes.ts";
import { workerArtifactMethods, type WorkerArtifactMethods } from "./artifacts/rpc/worker-artifact-routes.ts";
import { artifactStore } from "./artifacts/store/artifact-store.ts";
import {
  blockSnapshotStore,
  type BlockSnapshotRecord,
  type ConversationOfOwner,
} from "./conversations/store/block-snapshot-store.ts";
import {
  DELETE_BLOB,
  enqueueBlobDeletion,
  enqueueSweep,
  SWEEP_BLOBS,
  WRITE_TRANSCRIPT,
} from "./storage/store/blob-work.ts";
import { codeHostStore } from "./catalog/store/code-host-store.ts";
import { budgetStore } from "./budgets/store/budget-store.ts";
import { activateVersion, definitionStore } from "./catalog/store/definition-store.ts";
import { costStore } from "./budgets/store/cost-store.ts";
import { environmentStore } from "./catalog/store/environment-store.ts";
import { findRunWithFrozen } from "./runs/store/frozen-store.ts";
import { requireLease } from "./leases/store/lease-store.ts";
import { openPrisma } from "./storage/store/prisma-client.ts";
import { once } from "./storage/store/idempotency-store.ts";
import { pullRequestStore } from "./artifacts/store/pull-request-store.ts";
import { appendRunEvents, findNewestEvent, listRunEvents } from "./runs/store/run-events-store.ts";
import { followupsOf } from "./runs/store/message-store.ts";
import {
  conversationsByUrl,
  findByReference,
  listChildren,
  listOfConversation,
  findSimilarRuns,
  listOfConversations,
  listRuns,
  listTreeUids,
  currentRunsOfConversations,
} from "./runs/store/run-list-store.ts";
import { listSharedRuns } from "./runs/store/shared-run-store.ts";
import { runFactsStore } from "./facts/store/run-facts-store.ts";
import { runSpendStore } from "./facts/store/run-spend-store.ts";
import { findNewestOfConversation, findRun, visibleRunReader } from "./runs/store/run-store.ts";
import { connectedWorkers, environmentUse, isSettled, WORKER_SHOWN_SECONDS } from "./runs/store/run-view-store.ts";
import { scoredRunStore } from "./evidence/store/scored-run-store.ts";
import { skillStore, type ReadRepository } from "./catalog/store/skill-store.ts";
import { snapshotStore } from "./runs/store/snapshot-store.ts";
import { sweepStore } from "./artifacts/store/sweep-store.ts";
import { teamEventReader } from "./runs/store/team-event-store.ts";
import {
  harnessTranscriptStore,
  transcriptStore,
  type TranscriptRecord,
} from "./conversations/store/transcript-store.ts";
import { modelPriceStore } from "./catalog/store/model-price-store.ts";
import { usageStore } from "./budgets/store/usage-store.ts";
import { findStartingCommits } from "./runs/store/workspace-store.ts";
import { writeBlockSnapshot } from "./conversations/usecases/block-snapshots.ts";
import { describeRuns } from "./runs/usecases/describe-runs.ts";
import { reachEnvironment } from "./catalog/usecases/environments.ts";
import type { Transaction } from "./storage/store/transaction.ts";
import { assignmentDetails } from "./leases/usecases/prepare-assignment.ts";
import type { ReportUsageDeps } from "./budgets/usecases/report-usage.ts";
import { lockBudgets, readBudgets, spendBudgets } from "./budgets/usecases/spend-budgets.ts";
import { findEnvironment, resolveQueueSettings, resolveRunConfig } from "./runs/usecases/resolve-run.ts";
import { SharedReads } from "./catalog/usecases/shared-reads.ts";
import { findReferencedSkills } from "./runs/usecases/find-referenced-skills.ts";
import { nextSweep, sweepBlobs } from "./artifacts/usecases/sweep-blobs.ts";
import { writeTranscript } from "./conversations/usecases/transcripts.ts";

export type CatalogOptions = {
  readonly database: Database;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly signer: CallerSigner;
  readonly identity: Transport;
  readonly wakeups: Wakeups;
  readonly liveTexts: LiveTexts;
  readonly eventLog: Pick<EventLog, "head" | "growth">;
  readonly timings: Pick<Timings, "keepAliveMs" | "pollMs">;
  readonly publicUrl: string;
  /** Directories that may contain the local repositories of teams. */
  readonly localRepositoryRoots: readonly string[];
  /** Model providers that every team may use. */
  readonly modelProviders: readonly PlatformProvider[];
  /** Aliases of models. */
  readonly modelAliases: ModelAliases;
  /** MCP servers that configurations may reference by id. */
  readonly managedMcpServers: ManagedMcpServers;
  /** For how many days the newest workspace of a conversation is retained for a follow-up. */
  readonly snapshotDays: number;
  /** The hosts that may be reached at addresses set by teams. Default: public addresses only. */
  readonly outbound?: OutboundRule;
  /** Replaces the fetch for code hosts (`outbound.fetch` by default). */
  readonly fetch?: typeof fetch;
  /** Counts recorded usage for metrics. */
  readonly countUsage?: ReportUsageDeps["countUsage"];
};

/**
 * Composes what runs use and produce (environments, code hosts, definitions, skills, models, artifacts, usage,
 * snapshots, transcripts), and the views of runs.
 */
export function composeCatalog(options: CatalogOptions) {
  const { database, blobs, clock } = options;
  const { sql } = database;
  const { outbound = outboundRule([]) } = options;
  const prisma = openPrisma(database);
  const transaction: Transaction = (f) => database.transaction(f);
  const stores = {
    environments: environmentStore(prisma),
    codeHosts: codeHostStore(prisma),
    definitions: definitionStore(database),
    artifacts: artifactStore,
    pullRequests: pullRequestStore,
    usage: { ...usageStore, currentPrice: (on: Sql, modelId: string) => modelPriceStore.current(on, modelId) },
    snapshots: snapshotStore,
  };
  const budgeting = { clock, announce: budgetEvents, budgets: budgetStore };
  const identity = identityClient(options.identity, options.signer);
  const models = (teamSecrets: readonly string[]) =>
    modelCatalogue(options.modelProviders, teamSecrets, options.modelAliases);
  const shared = {
    ...{ ...stores, blobs, clock, transaction, activateVersion },
    ...{ identity, models, modelProviders: options.modelProviders, managedMcpServers: options.managedMcpServers },
    isPriced: async (modelId: string) => (await modelPriceStore.current(sql, modelId)) !== undefined,
    teamModels: async (teamUid: string | undefined) =>
      models(
        teamUid === undefined
          ? []
          : (await identity.resolveAgent(serviceCaller("orchestrator", newUid()), { teamUid })).teamSecrets,
      ),
    openCodeHost: codeHosts(options.fetch ?? outbound.fetch),
    readForge: forgeReaders(options.fetch ?? outbound.fetch),
    findPullRequest: (uid: string) => pullRequestStore.find(sql, uid),
    refusesHost: (host: string) => outbound.refuses(host),
    publicUrl: options.publicUrl.replace(/\/+$/, ""),
    localRepositoryRoots: options.localRepositoryRoots,
  };
  const skills = {
    ...shared,
    readSkills: (owner: Owner, repositories: readonly string[]) => skillStore.read(sql, owner, repositories),
    putSkills: (owner: Owner, read: ReadRepository) => skillStore.put(sql, owner, read),
    reads: new SharedReads<ReadRepository>(),
    factoriesInForce: (teams: readonly string[]) => stores.definitions.inForce(teams),
    workerSkills: (teams: readonly string[]) => skillStore.ofWorkers(sql, teams, WORKER_SHOWN_SECONDS),
    lastRuns: (owners: readonly Owner[], specs: readonly string[]) => skillStore.lastRuns(sql, owners, specs),
  };
  const resolving = {
    ...shared,
    findReferencedSkills: (...args: [Owner, readonly string[], readonly RepositoryRef[]]) =>
      findReferencedSkills(skills, ...args),
    reachEnvironment: (...args: [Caller, Owner, string]) => reachEnvironment(shared, ...args),
  };
  const reads = {
    ...visibleRunReader(database),
    listRunEvents: (runUid: string, afterSeq: number, limit: number) => listRunEvents(sql, runUid, afterSeq, limit),
    findNewestEvent: (runUid: string, kind: "harness_usage") => findNewestEvent(sql, runUid, kind),
    artifactsOfRuns: (runUids: readonly string[]) => artifactStore.listOfRuns(sql, runUids),
    usageOfRuns: (runUids: readonly string[]) => usageStore.ofRuns(sql, runUids),
    findNewestOfConversation: (caller: Caller, uid: string) => findNewestOfConversation(sql, caller, uid),
    listOfConversation: (caller: Caller, uid: string) => listOfConversation(sql, caller, uid),
    findRun: async (uid: string) => (isUuid(uid) ? findRun(sql, uid) : undefined),
    listSharedRuns: (...args: Parameters<ListSharedRuns>) => listSharedRuns(sql, ...args),
    listChildren: (caller: Caller, uids: readonly string[], limit: number) => listChildren(sql, caller, uids, limit),
    listOfConversations: (caller: Caller, uids: readonly string[], teamUid: string | undefined) =>
      listOfConversations(sql, caller, uids, teamUid),
    currentRunsOfConversations: (uids: readonly string[], teamUid: string | undefined) =>
      currentRunsOfConversations(sql, uids, teamUid),
    findByReference: (caller: Caller, url: string) => findByReference(sql, caller, url),
    conversationsByUrl: (teamUid: string, url: string) => conversationsByUrl(sql, teamUid, url),
    followupsOf: (runUid: string, afterSeq: number, limit: number) => followupsOf(sql, runUid, afterSeq, limit),
    listTreeUids: (caller: Caller, uids: readonly string[]) => listTreeUids(sql, caller, uids),
    findArtifact: (uid: string) => artifactStore.find(sql, uid),
    pullRequestUrlsOfTree: (runUid: string) => pullRequestStore.urlsOfTree(sql, runUid),
  };
  const deleteLater = (tx: Sql, key: string) => enqueueBlobDeletion(tx, key, clock.now());
  const transcripts = {
    ...reads,
    blobs,
    findTranscript: (runUid: string) => transcriptStore.find(sql, runUid),
    findHarnessTranscript: (runUid: string) => harnessTranscriptStore.find(sql, runUid),
    transcriptExtent: (runUid: string) => transcriptStore.extent(sql, runUid),
    recordTranscript: (runUid: string, record: TranscriptRecord) =>
      transaction(async (tx) => {
        const replaced = await transcriptStore.replace(tx, runUid, record);
        if (replaced !== undefined) await deleteLater(tx, replaced);
      }),
  };

  const blockSnapshots = {
    ...reads,
    blobs,
    findBlockSnapshot: (of: ConversationOfOwner) => blockSnapshotStore.find(sql, of),
    conversationExtent: (of: ConversationOfOwner) => blockSnapshotStore.extent(sql, of),
    recordBlockSnapshot: (of: ConversationOfOwner, record: BlockSnapshotRecord) =>
      transaction(async (tx) => {
        const replaced = await blockSnapshotStore.replace(tx, of, record);
        if (replaced !== undefined) await deleteLater(tx, replaced);
      }),
  };
  /** Writes the transcript and the block snapshot of a run; called when an execution ends. */
  const writeViews = async (runUid: string): Promise<void> => {
    await writeTranscript(transcripts, runUid);
    const conversation = await blockSnapshotStore.ofRun(sql, runUid);
    if (conversation) await writeBlockSnapshot(blockSnapshots, conversation);
  };

  const sweeping = {
    ...shared,
    files: sweepStore,
    deleteLater,
    knownKeys: (keys: readonly string[]) => sweepStore.known(sql, keys),
    snapshotDays: options.snapshotDays,
  };
  const planSweep = (): Promise<unknown> => enqueueSweep(sql, nextSweep(clock.now()));

  return {
    /** Returns the budgets that cover a run, if the run may have costs. */
    readBudgets: (runUid: string) => readBudgets(budgeting, sql, runUid),
    prisma,
    resolveRun: (caller: Caller, request: ResolveRunRequest) => resolveRunConfig(resolving, caller, request),
    resolveQueueSettings: (caller: Caller, request: Pick<ResolveRunRequest, "owner" | "agentUid">) =>
      resolveQueueSettings(shared, caller, request),
    prepareAssignment: (job: Job, session: WorkerSession) => assignmentDetails(shared, job, session),
    /** Returns runs as messages for the responses of RunService. */
    runMessages: async (runs: readonly Run[]) => (await describeRuns(reads, runs)).map(runMessage),
    /** The methods of RunService that read runs. */
    runViewMethods: runViewMethods({
      ...reads,
      cursors: options.cursors,
      findSimilar: (caller: Caller, query: RunListQuery) => findSimilarRuns(database.searches, caller, query),
      listRuns: (caller: Caller, query: RunListQuery, after: RunPosition | undefined, limit: number) =>
        listRuns(database.searches, caller, query, after, limit),
      clock,
    }),
    /** The methods of ConversationService that read conversations. */
    conversationViewMethods: conversationViewMethods({
      ...transcripts,
      ...blockSnapshots,
      lastWorkspace: (runUid) => snapshotStore.lastOf(sql, runUid),
      cursors: options.cursors,
      clock,
    }),
    /**
     * The methods of WorkerService through which attempts store artifacts, snapshots, transcripts, pull requests and
     * usage.
     */
    workerArtifactMethods: (
      sessionOf: (context: HandlerContext) => Promise<{ readonly uid: string }>,
    ): WorkerArtifactMethods =>
      workerArtifactMethods({
        ...shared,
        deleteLater,
        harnessTranscripts: harnessTranscriptStore,
        ...(options.countUsage ? { countUsage: options.countUsage } : {}),
        appendRunEvents,
        findRunWithFrozen,
        requireLease,
        sessionOf,
        costs: costStore,
        releaseCost: (tx, call) => costStore.releaseForCall(tx, call),
        lockBudgets: (...args) => lockBudgets(budgeting, ...args),
        spendBudgets: (...args) => spendBudgets(budgeting, ...args),
      }),
    /**
     * Registers ArtifactService, BudgetService, CatalogService, DefinitionOwnerService, EvidenceService, FactsService,
     * ModelPriceService and RunEventService.
     */
    routes(router: ConnectRouter): void {
      runEventRoutes(router, {
        ...reads,
        listTeamEvents: teamEventReader(sql),
        eventLog: options.eventLog,
        liveTexts: options.liveTexts,
        isSettled: (runUid) => isSettled(sql, runUid),
        waitForEvents: (runUid, timeoutMs, signal) => options.wakeups.wait(topics.runEvents(runUid), timeoutMs, signal),
        clock,
        timings: options.timings,
      });
      budgetRoutes(router, { ...budgeting, sql, transaction, once });
      modelPriceRoutes(router, { sql, transaction, once, cursors: options.cursors, modelPrices: modelPriceStore });
      factsRoutes(router, {
        runSnapshots: (uids) => runFactsStore.snapshots(sql, uids),
        modelCallsOfRuns: (uids) => runSpendStore.modelCalls(sql, uids),
        computeIntervalsOfRuns: (uids) => runSpendStore.computeIntervals(sql, uids),
        producedPullRequests: (uids) => runSpendStore.pullRequests(sql, uids),
        personFollowUpsOfRuns: (uids) => runSpendStore.personFollowUps(sql, uids),
        walkRuns: (after, limit) => runFactsStore.walk(sql, after, limit),
        cursors: options.cursors,
      });
      evidenceRoutes(router, {
        ...reads,
        ...shared,
        findStartingCommits: (uid) => findStartingCommits(sql, uid),
        runnersOf: (teamUid) => stores.definitions.runnersOf(teamUid),
        findScoredRun: (uid) => scoredRunStore.find(sql, uid),
        pullRequestsOfRuns: (uids) => pullRequestStore.listOfRuns(sql, uids),
        listScoredRuns: (uids) => scoredRunStore.list(sql, uids),
        ancestorAgents: (uids) => scoredRunStore.ancestorAgents(sql, uids),
      });
      artifactRoutes(router, {
        ...reads,
        ...shared,
        setPublic: (uid, isPublic) => artifactStore.setPublic(sql, uid, isPublic),
      });
      catalogRoutes(router, {
        ...skills,
        environmentUse: (caller, uids) => environmentUse(sql, caller, uids),
        currentPrices: (ids) => modelPriceStore.currentOf(sql, ids),
        connectedWorkers: (teams) => connectedWorkers(sql, teams),
        checkEnvironment: async (caller, owner, uid) => void (await findEnvironment(resolving, caller, owner, uid)),
      });
      definitionRoutes(router, {
        ...shared,
        workers: { hosts: async (team) => (await connectedWorkers(sql, [team])).map(({ workerHost }) => workerHost) },
      });
    },
    /** Handlers for the event feed of the factories service. */
    eventHandlers: { [DEFINITION_ACTIVATED]: onDefinitionActivated({ activateVersion }) } satisfies EventHandlers,
    /** Handlers for the service's work queue. */
    workHandlers: {
      [WRITE_TRANSCRIPT]: ({ payload }) => writeViews((payload as { run_uid: string }).run_uid),
      [DELETE_BLOB]: ({ payload }) => blobs.delete((payload as { blob_key: string }).blob_key),
      [SWEEP_BLOBS]: async (_item, { signal }) => {
        await planSweep(); // Before the sweep, so that the next one is planned even if this one fails.
        await sweepBlobs(sweeping, signal);
      },
    } satisfies Record<string, WorkHandler>,
    /** Enqueues the next sweep, unless it is enqueued already. */
    planSweep,
    stop: () => prisma.$disconnect(),
  };
}

/** The services that may call the methods composed here in their own name. */
export const catalogAllowList: Readonly<Record<string, readonly string[]>> = {
  ...definitionAllowList,
  ...evidenceAllowList,
  ...factsAllowList,
  ...allowServices(orchestrator.ArtifactService, { getArtifact: ["gateway"], getPullRequest: ["gateway"] }),
  ...allowServices(orchestrator.CatalogService, {
    listModels: ["factories", "gateway", "scoring"],
    listWorkers: ["factories"],
    describePullRequests: ["factories"],
    readCodeHost: ["metrics"],
  }),
};
