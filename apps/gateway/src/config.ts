import { blobSettings } from "@millwright/blobs";
import { optional, readConfig, required, type Env } from "@millwright/config";
import { serviceSettings } from "@millwright/service";
import { chosenKey } from "./identity/chosen-key.ts";
import { egressRangesSetting } from "./egress-ranges.ts";

const BOOTSTRAP_KEY = chosenKey("MILLWRIGHT_BOOTSTRAP_API_KEY");

/** Reads every environment variable of this service; libs/service has those of all services. */
export const loadConfig = (env: Env) =>
  readConfig(env, {
    ...serviceSettings,
    /** The public port: `/api/v1/*`, `/blobs/*`, `/rpc/millwright.worker.v1.*`, pages. */
    port: optional.int("PORT", 8080),
    /**
     * RPC addresses of the orchestrator, separated by commas, or a host name that resolves to several addresses.
     * Requests of workers are forwarded to them too.
     */
    orchestratorUrls: required.urls("ORCHESTRATOR_URL"),
    /** `http://…/jwks.json` on the orchestrator's operations ports. */
    orchestratorJwksUrls: required.urls("ORCHESTRATOR_JWKS_URL"),
    /** RPC addresses of the factories service. */
    factoriesUrls: required.urls("FACTORIES_URL"),
    factoriesJwksUrls: required.urls("FACTORIES_JWKS_URL"),
    /** RPC addresses of the scheduler. */
    schedulerUrls: required.urls("SCHEDULER_URL"),
    schedulerJwksUrls: required.urls("SCHEDULER_JWKS_URL"),
    /** RPC addresses of the scoring service. */
    scoringUrls: required.urls("SCORING_URL"),
    scoringJwksUrls: required.urls("SCORING_JWKS_URL"),
    /** RPC addresses of the metrics service. */
    metricsUrls: required.urls("METRICS_URL"),
    metricsJwksUrls: required.urls("METRICS_JWKS_URL"),
    /** RPC addresses of the webhook ingress. */
    webhookIngressUrls: required.urls("WEBHOOK_INGRESS_URL"),
    webhookIngressJwksUrls: required.urls("WEBHOOK_INGRESS_JWKS_URL"),
    /**
     * The same blob settings as the orchestrator's. Files in a directory are served here under `/blobs/*`; signed URLs
     * of a bucket point to the bucket.
     */
    ...blobSettings,
    egressRanges: egressRangesSetting,
    /**
     * API key (`mw_…`) of the first team's owner, created on the first start of the platform and ignored afterwards.
     */
    bootstrapApiKey: {
      ...BOOTSTRAP_KEY,
      read: (text: string | undefined) => (text ? BOOTSTRAP_KEY.read(text) : { fault: "is required" }),
    },
    /**
     * The platform's worker key (`mww_…`), for workers that take runs of every team. If absent, teams create their own
     * worker keys.
     */
    workerKey: chosenKey("MILLWRIGHT_WORKER_KEY"),
  });
