import { blobRule, blobSettings } from "@millwright/blobs";
import { optional, readConfig, required, type Env } from "@millwright/config";
import { PORT, serviceRules, serviceSettings, upstreamSettings } from "@millwright/service";
import { chosenKey } from "./identity/index.ts";
import { egressRangesSetting } from "./egress-ranges.ts";
import { signInRule, signInSettings } from "./sign-in-settings.ts";

export { signInRule, signInSettings };

/** Every environment variable of this service; libs/service has those of all services. */
export const settings = {
  ...serviceSettings,
  ...upstreamSettings("orchestrator", "factories", "scheduler", "scoring", "metrics", "webhookIngress"),
  port: optional.int("PORT", "The public port: `/api/v1/*`, `/blobs/*`, `/rpc/millwright.worker.v1.*`, pages.", {
    ...PORT,
    default: 8080,
  }),
  /** Files in a directory are served here under `/blobs/*`; signed URLs of a bucket point to the bucket. */
  ...blobSettings,
  egressRanges: egressRangesSetting,
  auditRetentionDays: optional.int(
    "MILLWRIGHT_AUDIT_RETENTION_DAYS",
    "Days for which the audit log retains its entries; 0: forever.",
    { default: 0, max: 36_500 },
  ),
  ...signInSettings,
  bootstrapApiKey: required.custom(
    "MILLWRIGHT_BOOTSTRAP_API_KEY",
    "API key (`mw_…`) of the first team's owner, created on the first start of the platform and ignored afterwards.",
    chosenKey,
  ),
  workerKey: optional.custom(
    "MILLWRIGHT_WORKER_KEY",
    "The platform's worker key (`mww_…`), for workers that take runs of every team. If absent, teams create their own worker keys.",
    chosenKey,
  ),
};

/** Reads the configuration. Throws one error that lists every problem. */
export const loadConfig = (env: Env) => readConfig(env, settings, [...serviceRules, blobRule, signInRule]);
