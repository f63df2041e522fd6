import { aCaller, memoryLog, testDatabase, type TestDatabase } from "@millwright/testing";
import { Readable } from "node:stream";
import type { Caller } from "@millwright/caller";
import { systemClock } from "@millwright/clock";
import { Database } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import { newUid, type RunUid, type TeamUid } from "@millwright/ids";
import { composeRuns, type RunOptions } from "../../src/compose-runs.ts";
import type { NewRun } from "../../src/runs/domain/new-run.ts";
import { DEFAULT_QUEUE_SETTINGS, type CapacityDefaults } from "../../src/catalog/domain/queue-settings.ts";
import type { FrozenConfig, ResolvedRun, ResolveRunRequest } from "../../src/runs/domain/resolved-run.ts";
import { DEFAULT_TIMINGS, type Timings } from "../../src/runs/domain/timings.ts";
import type { WorkerRegistration, WorkerSession } from "../../src/runs/domain/worker-session.ts";
import { claim } from "../../src/leases/store/queue-store.ts";
import { useCasesWith } from "./use-cases.ts";
import { listRunEvents } from "../../src/runs/store/run-events-store.ts";

export const MIGRATIONS = new URL("../../prisma/migrations", import.meta.url).pathname;

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

export const frozenFor = (
  { agentUid, factoryUid, config }: ResolveRunRequest,
  harness = text(config["harness"]) ?? "oz",
  host = text(config["worker_host"]),
  image = text(config["image"]),
  arch = text(config["arch"]),
): FrozenConfig => ({
  agent_prompt: "",
  base_prompt: "",
  model_id: "scripted",
  provider: "scripted",
  harness,
  skills: [],
  repositories: [],
  setup_commands: [],
  docker_image: image ?? "",
  env: {},
  secret_names: [],
  requirements: {
    harness,
    image,
    arch,
    worker_host: host,
  },
  idle_timeout_minutes: 10,
  spawnable_agents: [],
  provenance: {},
  agent_uid: agentUid as never,
  agent_name: agentUid && "agent",
  factory_uid: factoryUid as never,
});

/** Returns the configuration to which a request resolves in tests. */
export const resolvedFor = (
  request: ResolveRunRequest,
  settings: Partial<ResolvedRun["queueSettings"]> = {},
): ResolvedRun => ({
  agentConfig: { name: "test", ...(request.config as Record<string, string>) },
  frozen: frozenFor(request),
  queueSettings: {
    team: DEFAULT_QUEUE_SETTINGS,
    agent: DEFAULT_QUEUE_SETTINGS,
    factory: DEFAULT_QUEUE_SETTINGS,
    ...settings,
  },
  executorUid: request.agentUid ?? request.owner.uid,
});

export type TestPlatform = Awaited<ReturnType<typeof testPlatform>>;

const memoryBlobs = (stored: Map<string, Uint8Array>): RunOptions["blobs"] => ({
  put: async (key, body) => {
    stored.set(key, body as Uint8Array);
    return { size: 0, sha256: "" };
  },
  get: async (key) => {
    const bytes = stored.get(key);
    return bytes && { body: Readable.from([bytes]), size: bytes.length, contentType: "" };
  },
  delete: async (key) => void stored.delete(key),
  signDownload: async (key) => `https://blobs.example/${key}`,
  signOpenUpload: async (key) => ({ url: `https://blobs.example/${key}`, headers: {} }),
});

type WorkerKeys = Map<string, { keyUid: string; teamUid?: string }>;
type Overrides = Partial<RunOptions> & {
  limits?: Partial<CapacityDefaults>;
  queueSettings?: (request: ResolveRunRequest) => Partial<ResolvedRun["queueSettings"]>;
  poolSize?: number;
  /** Another replica of the same service, whose database and keys are shared. Close the new platform before it. */
  beside?: { db: TestDatabase; keys: WorkerKeys };
};

/**
 * Creates the run life cycle on a real, fresh database, with identity and configuration in memory. Loops run only when
 * started.
 */
export async function testPlatform(overrides: Overrides = {}) {
  const { beside } = overrides;
  const db = beside?.db ?? (await testDatabase(MIGRATIONS));
  const database = Database.open(db.url, { max: overrides.poolSize ?? 8, applicationName: "orchestrator test" });
  const timings: Timings = overrides.timings ?? { ...DEFAULT_TIMINGS, pollMs: 50 };
  const stored = new Map<string, Uint8Array>();
  const keys = beside?.keys ?? (new Map() as WorkerKeys);
  const { deps, ...loops } = composeRuns({
    clock: systemClock,
    capacityDefaults: { team: 1000, agent: 1000, factory: 1000, ...overrides.limits },
    log: memoryLog(),
    resolveRun: async (_caller, request) => resolvedFor(request, overrides.queueSettings?.(request)),
    resolveQueueSettings: async (_caller, request) => resolvedFor({ ...request, config: {} }).queueSettings,
    prepareAssignment: async () => ({ repositories: [], secrets: { TOKEN: "s3cret" } }),
    mintRunToken: async ({ executionId, attempt }) => `mwr_${executionId}.${attempt}`,
    blobs: memoryBlobs(stored),
    authenticateKey: async (key) => {
      const known = keys.get(key);
      if (!known) throw new DomainError({ kind: "unauthenticated", reason: "key_invalid", message: "No." });
      return known;
    },
    sealKey: (key) => key,
    openKey: (sealed) => sealed,
    ...overrides,
    database,
    timings,
  });
  const life = { ...loops, ...useCasesWith(deps) };
  return {
    db,
    database,
    deps,
    life,
    timings,
    keys,
    stored,
    async close() {
      await life.stop();
      await database.close();
      if (!beside) await db.close();
    },
    /** Registers a worker process and returns its session. */
    async worker({
      teamUid,
      slots = 20,
      host = `host-${newUid()}`,
      harness = "oz",
      images = [],
      arch,
      skills = [],
    }: {
      teamUid?: string;
      slots?: number;
      host?: string;
      harness?: string;
      images?: string[];
      arch?: string;
      skills?: WorkerRegistration["skills"];
    } = {}) {
      const key = `mww_${newUid()}`;
      keys.set(key, { keyUid: newUid(), teamUid });
      const token = await life.worker.register(key, {
        workerHost: host,
        instanceUid: newUid(),
        version: "0.1.0",
        backend: "test",
        slots,
        labels: {},
        harnesses: [{ type: harness, version: "1" }],
        models: [],
        images,
        arch,
        sandbox: "none",
        sandboxFeatures: [],
        skills,
      });
      return { key, token, session: await life.worker.authenticate(token) };
    },
    /** Claims what is available now, without polling. */
    claim: (worker: { session: WorkerSession }, slots = 1) =>
      claim(database, worker.session, slots, timings.offerTtlMs),
    async run(caller: Caller, request: Partial<NewRun> = {}) {
      const [created] = await life.createRuns(caller, [aRun(caller, request)]);
      return created!.run;
    },
    getRun: (caller: Caller, uid: string) => life.getRun(caller, uid),
    events: (runUid: string) => listRunEvents(database.sql, runUid, 0, 1000),
    kinds: async (runUid: string) => (await listRunEvents(database.sql, runUid, 0, 1000)).map(({ kind }) => kind),
    async inUse(uid: string) {
      const { rows } = await database.sql.query<{ in_use: number }>("SELECT in_use FROM capacity WHERE uid = $1", [
        uid,
      ]);
      return rows[0]?.in_use;
    },
    /** Returns the lifecycle events of a run as written; no sequencer runs here. */
    async facts(runUid: string) {
      const { rows } = await database.sql.query<{
        type: string;
        payload: Record<string, unknown>;
        entity_version: number;
        traceparent: string | null;
      }>(
        "SELECT type, payload, entity_version, traceparent FROM stream.event_pending WHERE entity_uid = $1 ORDER BY seq",
        [runUid],
      );
      return rows;
    },
    /** Lets a lease or offer expire. */
    async expire(executionId: number) {
      await database.sql.query(
        "UPDATE leases SET expires_at = clock_timestamp() - interval '1 second' WHERE execution_id = $1",
        [executionId],
      );
    },
    /** Records that the reaper had no pause, so that the next tick checks leases and all time counts for limits. */
    async reaperIsAwake() {
      await database.sql.query("UPDATE reaper_ticks SET last_tick = clock_timestamp(), resumed_at = 'epoch'");
    },
  };
}

export const teamOf = (caller: Caller): TeamUid => caller.teams[0]!.teamUid;

export const aRun = (caller: Caller, request: Partial<NewRun> = {}): NewRun => ({
  prompt: "Do it.",
  config: {},
  mode: "normal",
  owner: { type: "team", uid: teamOf(caller) },
  interactive: false,
  metadata: {},
  source: "API",
  attachments: [],
  ...request,
});

export { aCaller };
export type { RunUid };
