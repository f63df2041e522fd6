import { optional, readConfig, required, type Env } from "@millwright/config";
import { allowedInternalHosts } from "@millwright/outbound";
import { serviceSettings } from "@millwright/service";

/** Environment variables of this service; those that all services share are in libs/service. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** RPC addresses of the gateway (identity): a comma-separated list, or a DNS name with several addresses. */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` on the gateway's operations ports. */
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
    /** Directories that may contain local definition repositories. Default: none. */
    localRepositoryRoots: optional.list("MILLWRIGHT_LOCAL_REPOSITORY_ROOTS", []),
    /** A PEM file with additional certificate authorities for the hosts of definition repositories. */
    gitCaFile: optional.string("MILLWRIGHT_GIT_CA_FILE"),
    /** Interval of polls of a tracked branch's head. */
    headPollMs: optional.duration("MILLWRIGHT_BRANCH_POLL_INTERVAL", "30s"),
    /** Internal hosts and networks that may serve definition repositories. Default: none. */
    allowedInternalHosts,
  });
