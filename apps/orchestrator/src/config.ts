import { blobSettings, bucketSettings } from "@millwright/blobs";
import { optional, readConfig, required, type Env } from "@millwright/config";
import { allowedInternalHosts } from "@millwright/outbound";
import { serviceSettings } from "@millwright/service";
import { modelSettings } from "./catalog/model-settings.ts";

/** Every environment variable of this service. Variables of all services are in libs/service. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** RPC addresses of the gateway (identity): a comma-separated list, or one DNS name that resolves to many. */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` at the gateways' operations ports. */
    gatewayJwksUrls: required.urls("GATEWAY_JWKS_URL"),
    /** RPC addresses of factories. */
    factoriesUrls: required.urls("FACTORIES_URL"),
    factoriesJwksUrls: required.urls("FACTORIES_JWKS_URL"),
    /** RPC addresses of the scheduler, which calls this service. */
    schedulerUrls: required.urls("SCHEDULER_URL"),
    schedulerJwksUrls: required.urls("SCHEDULER_JWKS_URL"),
    /** RPC addresses of scoring, which calls this service. */
    scoringUrls: required.urls("SCORING_URL"),
    scoringJwksUrls: required.urls("SCORING_JWKS_URL"),
    /** RPC addresses of the metrics service, which calls this service. */
    metricsUrls: required.urls("METRICS_URL"),
    metricsJwksUrls: required.urls("METRICS_JWKS_URL"),
    /** The blob store of artifacts, snapshots and transcripts. */
    ...blobSettings,
    ...bucketSettings,
    /** Directories that may contain local code hosts. Default: none. */
    localRepositoryRoots: optional.list("MILLWRIGHT_LOCAL_REPOSITORY_ROOTS", []),
    /** Internal hosts and networks at which the code hosts of teams may be. Default: none. */
    allowedInternalHosts,
    /** Divides every duration of leases, offers and heartbeats; for failure tests. Must be equal on all replicas. */
    timeScale: optional.int("MILLWRIGHT_TIME_SCALE", 1),
    /** For how many days the newest workspace of a conversation is retained for a follow-up. */
    snapshotDays: optional.int("MILLWRIGHT_SNAPSHOT_DAYS", 30),
    ...modelSettings,
  });
