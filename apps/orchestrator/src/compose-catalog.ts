import { bindStore } from "./storage/store/bind-store.ts";
import type { Transport } from "@connectrpc/connect";
import type { BlobStore } from "@millwright/blobs";
import type { Clock } from "@millwright/clock";
import { SharedReads, type Database } from "@millwright/database";
import type { EventHandlers, EventLog } from "@millwright/events";
import { outboundRule, type OutboundRule } from "@millwright/outbound";
import type { Cursors } from "@millwright/paging";
import type { CallerSigner } from "@millwright/rpc";
import type { WorkBatches, WorkHandler } from "@millwright/work";
import { artifactStore } from "./artifacts/store/artifact-store.ts";
import { pullRequestStore } from "./artifacts/store/pull-request-store.ts";
import { expiryStore } from "./artifacts/store/expiry-store.ts";
import { sweepStore } from "./artifacts/store/sweep-store.ts";
import { expireRuns } from "./artifacts/usecases/expire-runs.ts";
import { nextSweep, sweepBlobs } from "./artifacts/usecases/sweep-blobs.ts";
import { costStore } from "./budgets/store/cost-store.ts";
import { usageStore } from "./budgets/store/usage-store.ts";
import type { ReportUsageDeps } from "./budgets/usecases/report-usage.ts";
import { codeHosts, forgeReaders } from "./catalog/clients/code-hosts.ts";
import { identityClient } from "./catalog/clients/identity-client.ts";
import type { ManagedMcpServers } from "./catalog/domain/mcp-servers.ts";
import type { PlatformProvider } from "./catalog/domain/model-providers.ts";
import { modelCatalogue, type ModelAliases } from "./catalog/domain/models.ts";
import { DEFINITION_ACTIVATED, onDefinitionActivated } from "./catalog/events/on-definition-activated.ts";
import { codeHostStore } from "./catalog/store/code-host-store.ts";
import { activateVersion, definitionStore } from "./catalog/store/definition-store.ts";
import { environmentStore } from "./catalog/store/environment-store.ts";
import { modelPriceStore } from "./catalog/store/model-price-store.ts";
import type { ReadRepository } from "./catalog/store/skill-store.ts";
import type { RunDeps } from "./compose-runs.ts";
import { bindViewStores } from "./compose-stores.ts";
import { blockSnapshotStore } from "./conversations/store/block-snapshot-store.ts";
import { harnessTranscriptStore, transcriptStore } from "./conversations/store/transcript-store.ts";
import { writeBlockSnapshot } from "./conversations/usecases/block-snapshots.ts";
import { writeTranscript } from "./conversations/usecases/transcripts.ts";
import { assignmentDetails } from "./leases/usecases/prepare-assignment.ts";
import { snapshotStore } from "./runs/store/snapshot-store.ts";
import { findEnvironment } from "./runs/usecases/find-environment.ts";
import { resolveQueueSettings } from "./runs/usecases/find-run-agent.ts";
import { resolveRunConfig } from "./runs/usecases/resolve-run.ts";
import type { Bound } from "./storage/store/bind-store.ts";
import { DELETE_BLOB, enqueueSweep, SWEEP_BLOBS, WRITE_TRANSCRIPT } from "./storage/store/blob-work.ts";
import { openPrisma } from "./storage/store/prisma-client.ts";
import type { Transaction } from "./storage/store/transaction.ts";

/** Many executions may end at once, and most transcripts are short: a batch is claimed and completed as a whole. */
const TRANSCRIPTS = { sizeMax: 16, concurrency: 4 };

export type CatalogOptions = {
  readonly database: Database;
  /** The dependencies of the life cycle of runs. */
  readonly runs: RunDeps;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly signer: CallerSigner;
  readonly identity: Transport;
  readonly eventLog: EventLog;
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
  /** For how many days after the end of a conversation's last run their workers' events are retained. 0: forever. */
  readonly runEventDays: number;
  /** The same for plans, files and screenshots. */
  readonly artifactDays: number;
  /** Maximum number of tokens of all model calls of one run. 0: no limit. */
  readonly runTokenLimit: number;
  /** The hosts that may be reached at addresses set by teams. Default: public addresses only. */
  readonly outbound?: OutboundRule;
  /** Replaces the fetch for code hosts (`outbound.fetch` by default). */
  readonly fetch?: typeof fetch;
  readonly countUsage?: ReportUsageDeps["countUsage"];
};

/**
 * Composes what runs use and produce (environments, code hosts, definitions, skills, models, artifacts, usage,
 * snapshots, transcripts), and the views of runs.
 */
export function composeCatalog(options: CatalogOptions) {
  const { database, blobs, clock, outbound = outboundRule([]) } = options;
  const { sql } = database;
  const prisma = openPrisma(database);
  const transaction: Transaction = (f) => database.transaction(f);
  const viewStores = bindViewStores(database);
  const shared = {
    ...options,
    ...viewStores,
    sql,
    transaction,
    activateVersion,
    environments: environmentStore(prisma),
    codeHosts: codeHostStore(prisma),
    definitions: definitionStore(database),
    artifacts: artifactStore,
    costs: costStore,
    modelPrices: modelPriceStore,
    pullRequests: pullRequestStore,
    usage: usageStore,
    snapshots: snapshotStore,
    sweeps: sweepStore,
    expiries: expiryStore,
    transcripts: transcriptStore,
    harnessTranscripts: harnessTranscriptStore,
    blockSnapshots: blockSnapshotStore,
    identity: identityClient(options.identity, options.signer),
    models: (teamSecrets: readonly string[]) =>
      modelCatalogue(options.modelProviders, teamSecrets, options.modelAliases),
    openCodeHost: codeHosts(options.fetch ?? outbound.fetch),
    readForge: forgeReaders(options.fetch ?? outbound.fetch),
    refusesHost: (host: string) => outbound.refuses(host),
    publicUrl: options.publicUrl.replace(/\/+$/, ""),
    reads: new SharedReads<ReadRepository>(),
  };
  const deps = {
    ...options.runs,
    ...shared,
    runs: options.runs.runs,
    checkEnvironment: async (...args: CheckEnvironment) => void (await findEnvironment(shared, ...args)),
  };
  /** Writes the transcript and the block snapshot of a run; called when an execution ends. */
  const writeViews = async (runUid: string): Promise<void> => {
    await writeTranscript(deps, runUid);
    const conversation = await blockSnapshotStore.ofRun(sql, runUid);
    if (conversation) await writeBlockSnapshot(deps, conversation);
  };
  /** Enqueues the next sweep, unless it is enqueued already. */
  const planSweep = (): Promise<unknown> => enqueueSweep(sql, nextSweep(clock.now()));
  return {
    deps,
    prisma,
    ...bindStore(shared, { resolveRun: resolveRunConfig, resolveQueueSettings, prepareAssignment: assignmentDetails }),
    /** Handlers for the event feed of the factories service. */
    eventHandlers: { [DEFINITION_ACTIVATED]: onDefinitionActivated({ activateVersion }) } satisfies EventHandlers,
    /** Handlers for the service's work queue. */
    workHandlers: {
      [DELETE_BLOB]: ({ payload }) => blobs.delete((payload as { blob_key: string }).blob_key),
      [SWEEP_BLOBS]: async (_item, { signal }) => {
        await planSweep(); // Before the sweep, so that the next one is planned even if this one fails.
        await expireRuns(deps, signal);
        await sweepBlobs(deps, signal);
      },
    } satisfies Record<string, WorkHandler>,
    /** Work that is processed in batches. */
    workBatches: {
      [WRITE_TRANSCRIPT]: {
        ...TRANSCRIPTS,
        handle: async (items, { signal }) => {
          for (const { payload } of items) {
            signal.throwIfAborted();
            await writeViews((payload as { run_uid: string }).run_uid);
          }
        },
      },
    } satisfies Record<string, WorkBatches>,
    planSweep,
    stop: () => prisma.$disconnect(),
  };
}

type CheckEnvironment = Parameters<Bound<typeof findEnvironment>>;
