import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { expect, test } from "@jest/globals";
import { directoryBlobs, type BlobStore } from "@millwright/blobs";
import type { Caller } from "@millwright/caller";
import { manualClock } from "@millwright/clock";
import { factories, metrics, orchestrator, scheduler, scoring, webhooks } from "@millwright/contracts";
import { DomainError, ERROR_KINDS, type ErrorKindName } from "@millwright/errors";
import {
  allowServices,
  callerOf,
  CallerSigner,
  CallerVerifier,
  inProcess,
  requestContextOf,
  type Routes,
} from "@millwright/rpc";
import { Cursors } from "@millwright/paging";
import { Metrics } from "@millwright/telemetry";
import { memoryLog } from "@millwright/testing";
import { Vault } from "@millwright/vault";
import { connectUpstreams } from "../../src/clients/upstreams.ts";
import { docsRoutes } from "../../src/pages/docs-page.ts";
import { pageLinks, type PageLinks } from "../../src/pages/page-links.ts";
import { runFileRoutes } from "../../src/pages/run-files.ts";
import { restApp, type Route } from "../../src/rest/index.ts";
import { linkViewer } from "../../src/sessions/link-viewer.ts";
import { browserSessions } from "../../src/sessions/browser-sessions.ts";
import { sessionRoutes } from "../../src/sessions/session-routes.ts";
import { runPullRequestRoutes } from "../../src/routes/runs/pull-requests.ts";
import { artifactRoutes } from "../../src/routes/runs/artifacts.ts";
import { automationRoutes } from "../../src/routes/triggers/automations.ts";
import { benchmarkRunRoutes } from "../../src/routes/benchmarks/benchmark-runs.ts";
import { benchmarkTaskRoutes } from "../../src/routes/benchmarks/benchmark-tasks.ts";
import { benchmarkTrialRoutes } from "../../src/routes/benchmarks/benchmark-trials.ts";
import { benchmarkRoutes } from "../../src/routes/benchmarks/benchmarks.ts";
import { blobMount } from "../../src/routes/platform/blobs.ts";
import { budgetRoutes } from "../../src/routes/costs/budgets.ts";
import { codeHostWebhookRoutes } from "../../src/routes/triggers/code-host-webhooks.ts";
import { codeHostRoutes } from "../../src/routes/catalog/code-hosts.ts";
import { scheduleRoutes } from "../../src/routes/triggers/schedules.ts";
import { conversationRoutes } from "../../src/routes/conversations/conversations.ts";
import { environmentGrantRoutes } from "../../src/routes/catalog/environment-grants.ts";
import { environmentRoutes } from "../../src/routes/catalog/environments.ts";
import { factoryCostRoutes } from "../../src/routes/metrics/factory-costs.ts";
import { factoryFilesRoutes } from "../../src/routes/factories/factory-files.ts";
import { factoryRoutes } from "../../src/routes/factories/factories.ts";
import { factoryBranchRoutes } from "../../src/routes/factories/factory-branches.ts";
import { factoryMetricsRoutes } from "../../src/routes/metrics/factory-metrics.ts";
import { factoryPullRequestRoutes } from "../../src/routes/metrics/factory-pull-requests.ts";
import { factorySourceRoutes } from "../../src/routes/factories/factory-source.ts";
import { modelAndWorkerRoutes } from "../../src/routes/catalog/models-and-workers.ts";
import { networkingRoutes } from "../../src/routes/catalog/networking.ts";
import type { Profile } from "../../src/routes/identity/profiles.ts";
import { localRunRoutes } from "../../src/routes/runs/local-runs.ts";
import { attachmentRoutes } from "../../src/routes/conversations/attachments.ts";
import { followupRoutes } from "../../src/routes/conversations/followups.ts";
import { interruptRoutes } from "../../src/routes/conversations/interrupts.ts";
import { scorerResultRoutes } from "../../src/routes/scorers/scorer-results.ts";
import { scorerRunRoutes } from "../../src/routes/scorers/scorer-runs.ts";
import { scorerRoutes } from "../../src/routes/scorers/scorers.ts";
import { selfImprovementRoutes } from "../../src/routes/scorers/self-improvement.ts";
import { runViewRoutes } from "../../src/routes/runs/run-views.ts";
import { creditRoutes } from "../../src/routes/costs/credits.ts";
import { modelPriceRoutes } from "../../src/routes/costs/model-prices.ts";
import { priceRoutes } from "../../src/routes/costs/prices.ts";
import { createRunRoutes } from "../../src/routes/runs/create-runs.ts";
import { listRunRoutes } from "../../src/routes/runs/list-runs.ts";
import { runRoutes } from "../../src/routes/runs/runs.ts";
import { skillRoutes } from "../../src/routes/catalog/skills.ts";
import { teamEventRoutes } from "../../src/routes/runs/team-events.ts";
import { taskRoutes } from "../../src/routes/factories/tasks.ts";
import { webhookDeliveryRoutes } from "../../src/routes/triggers/webhook-deliveries.ts";
import { webhookFilterTestRoutes } from "../../src/routes/triggers/webhook-filter-test.ts";
import { webhookRoutes } from "../../src/routes/triggers/webhooks.ts";
import { serveApi, type Api, type ApiAnswer } from "./api.ts";
import { CALLERS, OTHER_TEAM, PROFILES, TEAM, USER } from "./people.ts";

export const PUBLIC_URL = "https://mill.example";
export const NOW = "2026-11-20T10:00:00.000Z";

const SERVICES = [
  orchestrator.RunService,
  orchestrator.RunEventService,
  orchestrator.LocalRunService,
  orchestrator.LeaseService,
  orchestrator.ConversationService,
  orchestrator.ArtifactService,
  orchestrator.CatalogService,
  orchestrator.BudgetService,
  orchestrator.ModelPriceService,
  factories.FactoryService,
  factories.BranchService,
  factories.TaskService,
  factories.AutomationService,
  scheduler.ScheduleService,
  scoring.ScorerService,
  scoring.BenchmarkService,
  metrics.MetricsService,
  metrics.PriceService,
  webhooks.WebhookService,
  webhooks.CodeHostWebhookService,
] as const;

/** A call that reached an upstream service. */
export type UpstreamCall = { method: string; request: any; caller: Caller; signal: AbortSignal; traceId: string };

export type RestApi = Api & {
  /** Calls that reached upstream services since the last `respondWith`. */
  calls: UpstreamCall[];
  /**
   * Sets the responses of the upstream services, by local method name. A DomainError is thrown, a function is called.
   * Calls of other methods fail.
   */
  respondWith(responses: Record<string, unknown>): void;
  clock: ReturnType<typeof manualClock>;
  blobs: BlobStore;
  links: PageLinks;
  /** Requests counted for the rate limit of metrics: the hash of their credential, and their factory. */
  counted: [credentialHash: string, factoryUid: string][];
  /** Capabilities of every team. */
  capabilities: { metadataFilter: boolean; factoryBranches: boolean };
};

/**
 * Starts the gateway's resource routes, blobs and pages over HTTP, with upstream services that the test controls.
 * `stuckMs` is the timeout for readers of streams that do not read.
 */
export async function startRestApi({ stuckMs }: { stuckMs?: number } = {}): Promise<RestApi> {
  const clock = manualClock(NOW);
  const log = memoryLog();
  const processMetrics = new Metrics();
  const signer = await CallerSigner.create("gateway");
  const calls: UpstreamCall[] = [];
  let responses: Record<string, unknown> = {};
  const responseOf = (method: DescMethod, request: unknown, context: HandlerContext): unknown => {
    calls.push({
      method: method.localName,
      request,
      caller: callerOf(context),
      signal: context.signal,
      traceId: requestContextOf(context).traceId,
    });
    const response = responses[method.localName];
    if (response === undefined) throw new Error(`unexpected call of ${method.name}`);
    if (response instanceof DomainError) throw response;
    return typeof response === "function" ? (response as (request: unknown) => unknown)(request) : response;
  };
  const handlerOf = (method: DescMethod) => {
    if (method.methodKind !== "server_streaming")
      return (request: unknown, context: HandlerContext) => responseOf(method, request, context);
    return async function* (request: unknown, context: HandlerContext) {
      yield* responseOf(method, request, context) as AsyncIterable<never>;
    };
  };
  const implementation = (service: DescService) =>
    Object.fromEntries(service.methods.map((method) => [method.localName, handlerOf(method)]));
  const routes: Routes = (router) => {
    for (const service of SERVICES) router.service(service, implementation(service));
  };
  const allow = allowServices(orchestrator.ArtifactService, { getArtifact: ["gateway"] });
  const transport = inProcess(routes, {
    service: "upstream",
    verifier: new CallerVerifier([signer.jwk]),
    log,
    metrics: processMetrics,
    allow,
  });
  const upstreams = connectUpstreams(
    {
      orchestrator: transport,
      factories: transport,
      scheduler: transport,
      scoring: transport,
      metrics: transport,
      webhookIngress: transport,
    },
    signer,
  );

  const dir = await mkdtemp(join(tmpdir(), "millwright-api-"));
  const signingKey = new Uint8Array(32).fill(7);
  const links = pageLinks({ publicUrl: PUBLIC_URL, signingKey, clock });
  const blobs = directoryBlobs({ dir, publicUrl: PUBLIC_URL, signingKey, clock });
  const vault = Vault.fromMasterKey(new Uint8Array(32).fill(9));
  const sessions = browserSessions({
    vault,
    clock,
    publicUrl: PUBLIC_URL,
    // a session's token is its key
    store: {
      async startWithKey(key) {
        await authenticate({ bearer: key, teamUid: undefined });
        return { token: key, expiresAt: new Date(clock.now().getTime() + 60_000) };
      },
      rotate: async () => undefined,
      end: async () => {},
      endAll: async () => {},
    },
  });
  const capabilities = { metadataFilter: true, factoryBranches: true };
  const deps = { upstreams, findProfiles, links };
  const cursors = new Cursors(Buffer.alloc(32));
  const counted: RestApi["counted"] = [];
  const metered = { upstreams, limitMetrics: async (...request: [string, string]) => void counted.push(request) };
  const all: Route[] = [
    ...createRunRoutes({ upstreams, agents: { findPrincipal: async () => USER, known: async () => undefined } }),
    ...listRunRoutes({ ...deps, haveMetadataFilter: async () => capabilities.metadataFilter }),
    ...runRoutes(deps),
    ...localRunRoutes(upstreams),
    ...followupRoutes(upstreams, findProfiles),
    ...attachmentRoutes(upstreams),
    ...interruptRoutes(upstreams),
    ...runViewRoutes({ ...deps, cursors, stuckMs }),
    ...conversationRoutes(upstreams),
    ...teamEventRoutes({ upstreams, cursors, stuckMs }),
    ...artifactRoutes(upstreams, links),
    ...modelAndWorkerRoutes(upstreams),
    ...skillRoutes(upstreams),
    ...networkingRoutes({ egressRanges: ["203.0.113.0/24", "2001:db8::/32"] }),
    ...environmentRoutes(deps),
    ...environmentGrantRoutes({ upstreams, isTeammate: async (_caller, uid) => uid === USER }),
    ...budgetRoutes(upstreams),
    ...priceRoutes(upstreams),
    ...modelPriceRoutes(upstreams),
    ...creditRoutes({ upstreams, hasTeam: async (uid) => uid === TEAM || uid === OTHER_TEAM }),
    ...codeHostRoutes(upstreams),
    ...codeHostWebhookRoutes(upstreams),
    ...factoryRoutes(deps),
    ...factorySourceRoutes(upstreams),
    ...factoryBranchRoutes({ ...deps, hasFactoryBranches: async () => capabilities.factoryBranches }),
    ...factoryFilesRoutes,
    ...taskRoutes(deps),
    ...runPullRequestRoutes(upstreams),
    ...runFileRoutes(upstreams, links),
    ...automationRoutes(upstreams),
    ...webhookRoutes(upstreams),
    ...webhookFilterTestRoutes(upstreams),
    ...webhookDeliveryRoutes(upstreams),
    ...scheduleRoutes(deps),
    ...scorerRoutes(upstreams),
    ...scorerResultRoutes(upstreams),
    ...scorerRunRoutes(upstreams),
    ...selfImprovementRoutes(upstreams),
    ...benchmarkRoutes(deps),
    ...benchmarkTaskRoutes(upstreams),
    ...benchmarkRunRoutes(deps),
    ...benchmarkTrialRoutes(upstreams),
    ...factoryMetricsRoutes(metered),
    ...factoryCostRoutes(metered),
    ...factoryPullRequestRoutes(metered),
    ...docsRoutes({ publicUrl: PUBLIC_URL }),
    ...sessionRoutes({ sessions, publicUrl: PUBLIC_URL, providerLabel: undefined }),
  ];
  const mounts = [blobMount({ store: blobs, signingKey, publicUrl: PUBLIC_URL, clock, log })];
  const api = await serveApi(
    restApp({
      publicUrl: PUBLIC_URL,
      routes: all,
      mounts,
      authenticate,
      sessions,
      linkCaller: linkViewer(links),
      respondOnce: (_caller, _key, act) => act(),
      teamHeaders: ["x-service-team-uid"],
      clock,
      log,
      metrics: processMetrics,
    }),
    "member",
  );
  return {
    ...api,
    calls,
    clock,
    blobs,
    links,
    counted,
    capabilities,
    respondWith(next) {
      responses = next;
      calls.length = 0;
    },
    async close() {
      await api.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function authenticate({ bearer, teamUid }: { bearer: string; teamUid: string | undefined }): Promise<Caller> {
  const caller = CALLERS[bearer as keyof typeof CALLERS];
  if (!caller) throw new DomainError({ kind: "unauthenticated", reason: "key_invalid", message: "Unknown key." });
  return teamUid === undefined ? caller : { ...caller, activeTeamUid: teamUid as NonNullable<Caller["activeTeamUid"]> };
}

const findProfiles = async (uids: readonly string[]): Promise<Map<string, Profile>> =>
  new Map(uids.flatMap((uid) => (PROFILES[uid] ? [[uid, PROFILES[uid]] as const] : [])));

/** Returns an error of an upstream service. */
export const upstreamError = (
  kind: ErrorKindName,
  reason: string,
  rest: Partial<ConstructorParameters<typeof DomainError>[0]> = {},
): DomainError => new DomainError({ kind, reason, message: `Upstream error ${reason}.`, ...rest });

type UpstreamErrors = readonly [method: string, ...errors: DomainError[]];

/**
 * Declares tests, one per documented error of an upstream service, that the client gets the problem of its kind with
 * the upstream service's reason and text.
 */
export function testUpstreamErrors(
  api: () => RestApi,
  request: () => Promise<ApiAnswer>,
  [method, ...errors]: UpstreamErrors,
  others: Record<string, unknown> = {},
): void {
  test.each(errors.map((error) => [error.reason, ERROR_KINDS[error.kind].status, error] as const))(
    `returns the error %s of ${method} as %i`,
    async (reason, status, error) => {
      api().respondWith({ ...others, [method]: error });
      const { headers, body } = await request();
      expect(headers.get("content-type")).toBe("application/problem+json");
      expect(body).toMatchObject({
        status,
        reason,
        error_code: error.code,
        retryable: error.retryable,
        detail: error.message,
      });
      expect(api().calls.map((call) => call.method)).toContain(method);
    },
  );
}

/** Declares tests that none of the requests reaches an upstream service, and that each gets the given status. */
export function testRejectedBeforeUpstreams(
  api: () => RestApi,
  status: number,
  requests: readonly (readonly [method: string, path: string, body?: unknown])[],
): void {
  test.each(
    requests.map(([method, path, body]) => [method, path, JSON.stringify(body)?.slice(0, 100) ?? "", body] as const),
  )(`%s %s %s returns ${status} without a call of an upstream service`, async (method, path, _bodyText, body) => {
    api().respondWith({});
    const response = await api().call(method, path, body === undefined ? {} : { body });
    expect([response.status, api().calls.map((call) => call.method)]).toEqual([status, []]);
  });
}
