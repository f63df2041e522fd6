import type { Sql } from "@millwright/database";
import type { Cursors } from "@millwright/paging";
import { deriveKeys, type Vault } from "@millwright/vault";
import type { Upstreams } from "./clients/upstreams.ts";
import type { IdentityOperations, ProviderSignIn, SessionOperations, SignInLinks } from "./identity/index.ts";
import type { GatewayOptions } from "./options.ts";
import { consoleRoutes } from "./console/console-routes.ts";
import { CONSOLE_DIR, consoleSite } from "./console/console-site.ts";
import { docsRoutes } from "./pages/docs-page.ts";
import { pageLinks } from "./pages/page-links.ts";
import { runFileRoutes } from "./pages/run-files.ts";
import { restApp, type RespondOnce, type Authenticate, type Mount, type RestApp, type Route } from "./rest/index.ts";
import { aboutErrorsRoute } from "./routes/platform/about-errors.ts";
import { agentIdentityRoutes } from "./routes/identity/agent-identities.ts";
import { automationRoutes } from "./routes/triggers/automations.ts";
import { artifactRoutes } from "./routes/runs/artifacts.ts";
import { auditRoute } from "./routes/identity/audit.ts";
import { benchmarkRunRoutes } from "./routes/benchmarks/benchmark-runs.ts";
import { benchmarkTaskRoutes } from "./routes/benchmarks/benchmark-tasks.ts";
import { benchmarkTrialRoutes } from "./routes/benchmarks/benchmark-trials.ts";
import { benchmarkRoutes } from "./routes/benchmarks/benchmarks.ts";
import { blobMount } from "./routes/platform/blobs.ts";
import { codeHostWebhookRoutes } from "./routes/triggers/code-host-webhooks.ts";
import { budgetRoutes } from "./routes/costs/budgets.ts";
import { codeHostRoutes } from "./routes/catalog/code-hosts.ts";
import { conversationRoutes } from "./routes/conversations/conversations.ts";
import { creditRoutes } from "./routes/costs/credits.ts";
import { environmentGrantRoutes, type EnvironmentGrantRoutesDeps } from "./routes/catalog/environment-grants.ts";
import { environmentRoutes } from "./routes/catalog/environments.ts";
import { factoryCostRoutes } from "./routes/metrics/factory-costs.ts";
import { factoryFilesRoutes } from "./routes/factories/factory-files.ts";
import { factoryMetricsRoutes } from "./routes/metrics/factory-metrics.ts";
import { factoryPullRequestRoutes } from "./routes/metrics/factory-pull-requests.ts";
import { factoryRoutes } from "./routes/factories/factories.ts";
import { factoryBranchRoutes } from "./routes/factories/factory-branches.ts";
import { factorySourceRoutes } from "./routes/factories/factory-source.ts";
import { keyRoutes } from "./routes/identity/keys.ts";
import { invitationRoutes } from "./routes/identity/invitations.ts";
import { memberRoutes } from "./routes/identity/members.ts";
import { metricsRoute } from "./routes/platform/prometheus-metrics.ts";
import { modelPriceRoutes } from "./routes/costs/model-prices.ts";
import { modelAndWorkerRoutes } from "./routes/catalog/models-and-workers.ts";
import { networkingRoutes } from "./routes/catalog/networking.ts";
import { priceRoutes } from "./routes/costs/prices.ts";
import type { FindProfiles, Profile } from "./routes/identity/profiles.ts";
import { localRunRoutes } from "./routes/runs/local-runs.ts";
import { attachmentRoutes } from "./routes/conversations/attachments.ts";
import { followupRoutes } from "./routes/conversations/followups.ts";
import { interruptRoutes } from "./routes/conversations/interrupts.ts";
import { runPullRequestRoutes } from "./routes/runs/pull-requests.ts";
import { runViewRoutes } from "./routes/runs/run-views.ts";
import { createRunRoutes } from "./routes/runs/create-runs.ts";
import { listRunRoutes } from "./routes/runs/list-runs.ts";
import { runRoutes } from "./routes/runs/runs.ts";
import { scheduleRoutes } from "./routes/triggers/schedules.ts";
import { scorerResultRoutes } from "./routes/scorers/scorer-results.ts";
import { scorerRunRoutes } from "./routes/scorers/scorer-runs.ts";
import { scorerRoutes } from "./routes/scorers/scorers.ts";
import { secretRoutes } from "./routes/identity/secrets.ts";
import { selfImprovementRoutes } from "./routes/scorers/self-improvement.ts";
import { skillRoutes } from "./routes/catalog/skills.ts";
import { taskRoutes } from "./routes/factories/tasks.ts";
import { teamEventRoutes } from "./routes/runs/team-events.ts";
import { teamRoutes } from "./routes/identity/teams.ts";
import { webhookDeliveryRoutes } from "./routes/triggers/webhook-deliveries.ts";
import { webhookFilterTestRoutes } from "./routes/triggers/webhook-filter-test.ts";
import { webhookRoutes } from "./routes/triggers/webhooks.ts";
import { whoAmIRoute } from "./routes/identity/whoami.ts";
import { browserSessions } from "./sessions/browser-sessions.ts";
import { linkRoutes } from "./sessions/link-routes.ts";
import { linkViewer } from "./sessions/link-viewer.ts";
import { providerRoutes } from "./sessions/provider-routes.ts";
import { sessionRoutes } from "./sessions/session-routes.ts";
import type { CreateOnce, FindCreated } from "./store/idempotency-store.ts";
import type { LimitMetricsRequests } from "./usecases/limit-metrics-requests.ts";

const TEAM_HEADER = "x-service-team-uid";
/** Header that published clients send. */
const TEAM_HEADER_ALIASES = ["x-warp-team-uid"];

type PublicAppDeps = {
  options: GatewayOptions;
  authenticate: Authenticate;
  identity: IdentityOperations;
  sessions: SessionOperations;
  signInLinks: SignInLinks;
  providerSignIn: ProviderSignIn | undefined;
  /** The gateway's database. */
  sql: Sql;
  vault: Vault;
  cursors: Cursors;
  upstreams: Upstreams;
  createOnce: CreateOnce;
  findCreated: FindCreated;
  respondOnce: RespondOnce;
  limitMetrics: LimitMetricsRequests;
};

/** Returns the public HTTP application: REST below `/api/v1`, pages, signed blobs and the workers' listener. */
export function publicApp(deps: PublicAppDeps): RestApp {
  const { options: o, authenticate, identity, upstreams, respondOnce, limitMetrics } = deps;
  const [signingKey, ...acceptedKeys] = deriveKeys(o, "page links");
  const links = pageLinks({ publicUrl: o.publicUrl, signingKey, acceptedKeys, clock: o.clock });
  const cookies = { vault: deps.vault, clock: o.clock, publicUrl: o.publicUrl };
  const sessions = browserSessions({ ...cookies, store: deps.sessions });
  const signIn = { authenticate, sessions, publicUrl: o.publicUrl };
  const site = consoleSite(o.consoleDir ?? CONSOLE_DIR);
  const shared = { upstreams, findProfiles: profileFinder(identity), links };
  const routes: Route[] = [
    whoAmIRoute(identity),
    ...teamRoutes(deps),
    ...memberRoutes(deps),
    ...invitationRoutes(deps),
    ...keyRoutes(deps),
    ...secretRoutes(deps),
    auditRoute(deps),
    ...agentIdentityRoutes({ ...deps, factories: upstreams.factories, catalog: upstreams.catalog }),
    ...createRunRoutes({ upstreams, agents: identity.agents }),
    ...listRunRoutes({
      ...shared,
      haveMetadataFilter: async (uids) => (await identity.teams.list(uids)).every((team) => team.metadataFilter),
    }),
    ...runRoutes(shared),
    ...localRunRoutes(upstreams),
    ...followupRoutes(upstreams, shared.findProfiles),
    ...attachmentRoutes(upstreams),
    ...interruptRoutes(upstreams),
    ...runViewRoutes({ upstreams, links, cursors: deps.cursors }),
    ...conversationRoutes(upstreams),
    ...teamEventRoutes(deps),
    ...artifactRoutes(upstreams, links),
    ...environmentRoutes(shared),
    ...environmentGrantRoutes({ upstreams, isTeammate: teammates(identity) }),
    ...scheduleRoutes(shared),
    ...modelAndWorkerRoutes(upstreams),
    ...skillRoutes(upstreams),
    ...networkingRoutes(o),
    ...budgetRoutes(upstreams),
    ...priceRoutes(upstreams),
    ...modelPriceRoutes(upstreams),
    ...creditRoutes({
      upstreams,
      hasTeam: async (uid) => (await identity.teams.list([uid])).length > 0,
    }),
    ...codeHostRoutes(upstreams),
    ...codeHostWebhookRoutes(upstreams),
    ...factoryRoutes(shared),
    ...factorySourceRoutes(upstreams),
    ...factoryBranchRoutes({
      upstreams,
      hasFactoryBranches: async (uid) => (await identity.teams.list([uid])).every((team) => team.factoryBranches),
    }),
    ...factoryFilesRoutes,
    ...taskRoutes(shared),
    ...automationRoutes(upstreams),
    ...webhookRoutes(upstreams),
    ...webhookFilterTestRoutes(upstreams),
    ...webhookDeliveryRoutes(upstreams),
    ...scorerRoutes(upstreams),
    ...scorerResultRoutes(upstreams),
    ...scorerRunRoutes(upstreams),
    ...selfImprovementRoutes(upstreams),
    ...benchmarkRoutes(shared),
    ...benchmarkTaskRoutes(upstreams),
    ...benchmarkRunRoutes(shared),
    ...benchmarkTrialRoutes(upstreams),
    ...factoryMetricsRoutes({ upstreams, limitMetrics }),
    ...factoryCostRoutes({ upstreams, limitMetrics }),
    ...factoryPullRequestRoutes({ upstreams, limitMetrics }),
    ...runPullRequestRoutes(upstreams),
    ...runFileRoutes(upstreams, links),
    ...sessionRoutes({ ...signIn, providerLabel: o.provider?.label }),
    ...linkRoutes({ ...signIn, links: deps.signInLinks }),
    ...providerRoutes({ ...cookies, provider: deps.providerSignIn, sessions, log: o.log }),
    ...consoleRoutes(site),
    ...docsRoutes(o),
    aboutErrorsRoute,
    ...(o.publicMetrics ? [metricsRoute({ metrics: o.metrics, ...o.publicMetrics })] : []),
  ];
  const mounts: Mount[] = [
    ...(o.blobs ? [blobMount({ ...o.blobs, publicUrl: o.publicUrl, clock: o.clock, log: o.log })] : []),
    ...(o.webhookListener ? [{ prefix: "/webhooks/" as const, listener: o.webhookListener, isRecorded: true }] : []),
    ...(o.workerListener ? [{ prefix: "/rpc/" as const, listener: o.workerListener, isRecorded: true }] : []),
  ];
  const teamHeaders = [TEAM_HEADER, ...(o.teamHeaderAliases ?? TEAM_HEADER_ALIASES)];
  return restApp({
    publicUrl: o.publicUrl,
    routes,
    mounts,
    authenticate,
    sessions,
    linkCaller: linkViewer(links),
    navigationPage: site.page,
    respondOnce,
    teamHeaders,
    clock: o.clock,
    log: o.log,
    metrics: o.metrics,
    tracer: o.tracer,
  });
}

const teammates =
  ({ profiles }: IdentityOperations): EnvironmentGrantRoutesDeps["isTeammate"] =>
  async ({ teams }, userUid) =>
    (await profiles.find({ uids: [userUid], emails: [], teamUids: teams.map(({ teamUid }) => teamUid) })).some(
      ({ type }) => type === "user",
    );

/** Returns profiles for records whose visibility was checked before. */
const profileFinder =
  ({ profiles }: IdentityOperations): FindProfiles =>
  async (uids) => {
    const found = await profiles.find({ uids: [...new Set(uids)], emails: [] });
    return new Map(
      found.map(({ type, uid, displayName, email }): [string, Profile] => [
        uid,
        { type, uid, display_name: displayName, email },
      ]),
    );
  };
