import { blobSettings, bucketSettings } from "@millwright/blobs";
import { optional, readConfig, required, type Env } from "@millwright/config";
import { allowedInternalHosts } from "@millwright/outbound";
import { serviceSettings } from "@millwright/service";
import { modelSettings } from "./model-settings.ts";

/** Every environment variable of this service; those of all services are in libs/service. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** RPC addresses of the gateway (identity), with commas between, or a name that stands for many. */
    gatewayUrls: required.urls("GATEWAY_URL"),
    /** `http://…/jwks.json` of the gateway's operations ports. */
    gatewayJwksUrls: required.urls("GATEWAY_JWKS_URL"),
    /** RPC addresses of factories. */
    factoriesUrls: required.urls("FACTORIES_URL"),
    factoriesJwksUrls: required.urls("FACTORIES_JWKS_URL"),
    /** The scheduler, which calls it. */
    schedulerUrls: required.urls("SCHEDULER_URL"),
    schedulerJwksUrls: required.urls("SCHEDULER_JWKS_URL"),
    /** Scoring, which calls it. */
    scoringUrls: required.urls("SCORING_URL"),
    scoringJwksUrls: required.urls("SCORING_JWKS_URL"),
    /** RPC addresses of the metrics service, which calls this one. */
    metricsUrls: required.urls("METRICS_URL"),
    metricsJwksUrls: required.urls("METRICS_JWKS_URL"),
    /** Where artifacts, snapshots and transcripts are. */
    ...blobSettings,
    ...bucketSettings,
    /** Directories below which local code hosts may lie; none by default. */
    localRepositoryRoots: optional.list("MILLWRIGHT_LOCAL_REPOSITORY_ROOTS", []),
    /** Internal hosts and networks that code hosts of teams may be at; none by default. */
    allowedInternalHosts,
    /** Divides every lease, offer and heartbeat time; for tests of failures. The same on all replicas. */
    timeScale: optional.int("MILLWRIGHT_TIME_SCALE", 1),
    /** How long the newest workspace of a conversation is kept for a follow-up. */
    snapshotDays: optional.int("MILLWRIGHT_SNAPSHOT_DAYS", 30),
    ...modelSettings,
  });
