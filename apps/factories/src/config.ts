import { optional, readConfig, required, type Env } from "@millwright/config";
import { allowedInternalHosts } from "@millwright/outbound";
import { serviceSettings } from "@millwright/service";

/** Every environment variable of this service; those of all services are in libs/service. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** RPC addresses of the gateway (identity), with commas between, or a name that stands for many. */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` of the gateway's operations ports. */
    gatewayJwksUrls: required.urls("GATEWAY_JWKS_URL"),
    /** RPC addresses of the orchestrator. */
    orchestratorUrls: required.urls("ORCHESTRATOR_URL"),
    orchestratorJwksUrls: required.urls("ORCHESTRATOR_JWKS_URL"),
    /** RPC addresses of the scheduler. */
    schedulerUrls: required.urls("SCHEDULER_URL"),
    schedulerJwksUrls: required.urls("SCHEDULER_JWKS_URL"),
    /** RPC addresses of scoring. */
    scoringUrls: required.urls("SCORING_URL"),
    scoringJwksUrls: required.urls("SCORING_JWKS_URL"),
    /** RPC addresses of the metrics service, which calls this one. */
    metricsUrls: required.urls("METRICS_URL"),
    metricsJwksUrls: required.urls("METRICS_JWKS_URL"),
    /** RPC addresses of the webhook ingress. */
    webhookIngressUrls: required.urls("WEBHOOK_INGRESS_URL"),
    webhookIngressJwksUrls: required.urls("WEBHOOK_INGRESS_JWKS_URL"),
    /** Directories below which definition repositories may lie on disk; none by default. */
    localRepositoryRoots: optional.list("MILLWRIGHT_LOCAL_REPOSITORY_ROOTS", []),
    /** A file with further certificate authorities that the hosts of definition repositories may have (PEM). */
    gitCaFile: optional.string("MILLWRIGHT_GIT_CA_FILE"),
    /** Between two looks at the head of a tracked branch. */
    headPollMs: optional.duration("MILLWRIGHT_BRANCH_POLL_INTERVAL", "30s"),
    /** Internal hosts and networks that definition repositories may be at; none by default. */
    allowedInternalHosts,
  });
