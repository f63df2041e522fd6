import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { directoryBlobs, verifySignedRequest } from "@millwright/blobs";
import { systemClock, type Clock } from "@millwright/clock";
import { definitions, identity, orchestrator, worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { EventLog } from "@millwright/events";
import { Cursors } from "@millwright/paging";
import {
  call,
  CallerSigner,
  CallerVerifier,
  clientFor,
  inProcess,
  type ServerOptions,
  type Verifier,
} from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { memoryLog } from "@millwright/testing";
import { WorkQueue } from "@millwright/work";
import { composeCatalog } from "../../src/compose-catalog.ts";
import { ALLOWED_SERVICES, routes as orchestratorRoutes, workerRoutes } from "../../src/rpc/routes.ts";
import type { ManagedMcpServers } from "../../src/catalog/domain/mcp-servers.ts";
import type { PlatformProvider } from "../../src/catalog/domain/model-providers.ts";
import { DEFAULT_TIMINGS } from "../../src/runs/domain/timings.ts";
import { testPlatform } from "./platform.ts";

type AgentAnswer = MessageInitShape<typeof identity.ResolveAgentResponseSchema>;

/** The identity service in memory: agents by uid or name, secrets by name. */
function fakeIdentity() {
  const agents = new Map<string, AgentAnswer>();
  const secrets = new Map<string, string>();
  const teamLayer = { source: "team", uid: "", version: 1n, config: {} as Record<string, string> };
  const routes = (router: ConnectRouter) =>
    router.service(identity.IdentityService, {
      resolveAgent({ agentUid, agentName, askedSecrets }) {
        const layers = [teamLayer];
        const teamSecrets = askedSecrets.filter((name) => secrets.has(name));
        if (!agentUid && !agentName) return { layers, teamSecrets };
        const agent = agents.get(agentUid || agentName);
        if (!agent) throw new DomainError({ kind: "not_found", reason: "agent_not_found", message: "No such agent." });
        return { ...agent, teamSecrets, layers: [...(agent.layers ?? []), ...layers] } as AgentAnswer;
      },
      resolveSecrets({ names, optionalNames }) {
        const missing = names.find((name) => !secrets.has(name));
        if (missing)
          throw new DomainError({ kind: "not_found", reason: "secret_not_found", message: `No secret ${missing}.` });
        return {
          values: Object.fromEntries(
            [...names, ...optionalNames].flatMap((name) => (secrets.has(name) ? [[name, secrets.get(name)!]] : [])),
          ),
        };
      },
    });
  return { agents, secrets, teamLayer, routes };
}

export type CatalogPlatform = Awaited<ReturnType<typeof catalogPlatform>>;

/**
 * Starts the orchestrator on a real database with its real servers, with identity in memory and blobs in a directory.
 */
export async function catalogPlatform(
  overrides: {
    localRepositoryRoots?: string[];
    fetch?: typeof fetch;
    poolSize?: number;
    modelProviders?: PlatformProvider[];
    managedMcpServers?: ManagedMcpServers;
    clock?: Clock;
    runEventDays?: number;
    artifactDays?: number;
  } = {},
) {
  const clock = overrides.clock ?? systemClock;
  const known = fakeIdentity();
  const [gateway, own, factories, scoring, metrics] = await Promise.all(
    ["gateway", "orchestrator", "factories", "scoring", "metrics"].map((service) => CallerSigner.create(service)),
  );
  const verifier = new CallerVerifier([gateway!.jwk, own!.jwk, factories!.jwk, scoring!.jwk, metrics!.jwk]);
  const server = (service: string, entrance: Verifier = verifier): ServerOptions => ({
    service,
    verifier: entrance,
    log: memoryLog(),
    metrics: new Metrics(),
    allow: allowed,
  });
  const us = ["orchestrator"];
  const allowed = {
    ...ALLOWED_SERVICES,
    "millwright.identity.v1.IdentityService/ResolveSecrets": us,
    "millwright.identity.v1.IdentityService/ResolveAgent": us,
  };

  const dir = await mkdtemp(join(tmpdir(), "millwright-blobs-"));
  const signingKey = new Uint8Array(32).fill(7);
  const blobs = directoryBlobs({ dir, publicUrl: "http://public.test", signingKey, clock });
  const catalogLater: { it?: ReturnType<typeof composeCatalog> } = {};
  const platform = await testPlatform({
    poolSize: overrides.poolSize ?? 8,
    resolveRun: (...args) => catalogLater.it!.resolveRun(...args),
    prepareAssignment: (job, session) => catalogLater.it!.prepareAssignment(job, session),
    blobs,
    clock,
    timings: { ...DEFAULT_TIMINGS, keepAliveMs: 200, pollMs: 50 },
  });
  const { database, deps } = platform;
  const eventLog = new EventLog({ database, clock: systemClock, log: memoryLog() });
  const catalog = composeCatalog({
    ...{
      database,
      blobs,
      clock,
      snapshotDays: 30,
      runEventDays: overrides.runEventDays ?? 0,
      artifactDays: overrides.artifactDays ?? 0,
      signer: own!,
      runs: deps,
      runTokenLimit: 0,
      eventLog,
      publicUrl: "http://public.test",
      modelProviders: overrides.modelProviders ?? [],
      modelAliases: {},
      managedMcpServers: overrides.managedMcpServers ?? {},
    },
    cursors: new Cursors(new Uint8Array(32).fill(3)),
    identity: inProcess(known.routes, server("gateway")),
    localRepositoryRoots: overrides.localRepositoryRoots ?? [],
    fetch: overrides.fetch,
  });
  catalogLater.it = catalog;
  const stopNotifying = database.onCommit((change) => deps.wakeups.notify(change));
  const { workHandlers: handlers, workBatches: batches } = catalog;
  const work = new WorkQueue({ database, clock: systemClock, log: memoryLog(), handlers, batches });

  const transport = inProcess((router) => orchestratorRoutes(router, catalog.deps), server("orchestrator"));
  const workerTransport = inProcess(
    (router) => workerRoutes(router, catalog.deps),
    server("worker", { authenticate: async () => undefined }),
  );

  return {
    ...platform,
    ...{ known, blobs, dir, catalog, work, eventLog },
    runs: clientFor(orchestrator.RunService, transport, { signer: gateway! }),
    runEvents: clientFor(orchestrator.RunEventService, transport, { signer: gateway! }),
    conversations: clientFor(orchestrator.ConversationService, transport, { signer: gateway! }),
    artifacts: clientFor(orchestrator.ArtifactService, transport, { signer: gateway! }),
    catalogue: clientFor(orchestrator.CatalogService, transport, { signer: gateway! }),
    budgets: clientFor(orchestrator.BudgetService, transport, { signer: gateway! }),
    modelPrices: clientFor(orchestrator.ModelPriceService, transport, { signer: gateway! }),
    catalogueByFactories: clientFor(orchestrator.CatalogService, transport, { signer: factories! }),
    catalogueByMetrics: clientFor(orchestrator.CatalogService, transport, { signer: metrics! }),
    definitions: clientFor(definitions.DefinitionOwnerService, transport, { signer: factories! }),
    evidence: clientFor(orchestrator.EvidenceService, transport, { signer: scoring! }),
    /** The same service, called by a service that is not on its allow-list. */
    evidenceByGateway: clientFor(orchestrator.EvidenceService, transport, { signer: gateway! }),
    runFacts: clientFor(orchestrator.FactsService, transport, { signer: metrics! }),
    runFactsByGateway: clientFor(orchestrator.FactsService, transport, { signer: gateway! }),
    runFactsByScoring: clientFor(orchestrator.FactsService, transport, { signer: scoring! }),
    /** The same server, called by a service that it does not permit. */
    definitionsByGateway: clientFor(definitions.DefinitionOwnerService, transport, { signer: gateway! }),
    workers: clientFor(worker.WorkerService, workerTransport),
    as: call,
    /** Executes a signed URL as the gateway would. */
    async follow(method: "GET" | "PUT", url: string, body?: Uint8Array): Promise<string> {
      const { pathname, search } = new URL(url);
      const permitted = verifySignedRequest({ signingKey, clock }, method, pathname + search);
      if (permitted.method === "PUT") {
        await blobs.put(permitted.key, body ?? new Uint8Array(), permitted);
        return "";
      }
      const blob = await blobs.get(permitted.key);
      const chunks: Buffer[] = [];
      for await (const chunk of blob!.body) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString("utf8");
    },
    async close() {
      stopNotifying();
      await eventLog.stop();
      await catalog.stop();
      await platform.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Returns the headers that a worker sends with every call. */
export const bearer = ({ token }: { token: string }) => ({ headers: { authorization: `Bearer ${token}` } });
