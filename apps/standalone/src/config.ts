import { hostname } from "node:os";
import { resolve } from "node:path";
import { blobSettings, bucketRule, bucketSettings } from "@millwright/blobs";
import { optional, readConfig, type Env } from "@millwright/config";
import { settings as factories } from "@millwright/factories/config";
import { chosenKey } from "@millwright/gateway/compose";
import { settings as gateway, signInRule, signInSettings } from "@millwright/gateway/config";
import { settings as orchestrator } from "@millwright/orchestrator/config";
import { defaultInternalHosts } from "@millwright/outbound";
import { modelSettings } from "@millwright/orchestrator/compose";
import { settings as scheduler } from "@millwright/scheduler/config";
import { settings as scoring } from "@millwright/scoring/config";
import { eventRetentionDays, PORT } from "@millwright/service";
import { logLevel, tracingOf, tracingSettings } from "@millwright/telemetry";
import { settings as webhookIngress } from "@millwright/webhook-ingress/config";
import { settings as worker } from "@millwright/worker/config";
import { workerEnvironment } from "./worker-environment.ts";

export type StandaloneConfig = ReturnType<typeof loadConfig>;

/** Every environment variable of `npm start`. */
export const settings = {
  port: optional.int("PORT", "The public port; 0 selects a free one.", { ...PORT, default: 8080 }),
  host: optional.string("HOST", "Listen address.", { default: "127.0.0.1" }),
  dataDir: optional.string(
    "MILLWRIGHT_DATA_DIR",
    "Directory of the database cluster, blobs, master key, logs and workers.",
    { default: ".millwright" },
  ),
  /** If absent, blobs are stored in `blobs/` of the data directory. */
  blobUrl: blobSettings.blobUrl,
  ...bucketSettings,
  publicUrl: optional.url("MILLWRIGHT_PUBLIC_URL", "Origin of links and signed URLs. Default: `http://HOST:PORT`."),
  webhookUrl: webhookIngress.webhookUrl,
  trustedProxies: webhookIngress.trustedProxies,
  bootstrapApiKey: optional.custom(
    "MILLWRIGHT_BOOTSTRAP_API_KEY",
    "API key of the first team's owner. If absent, a key is generated and printed once.",
    chosenKey,
  ),
  metricsKey: optional.custom(
    "MILLWRIGHT_METRICS_KEY",
    "Key that gives access to [`/metrics`](observability.md#metrics) only. If absent, only platform administrators can read it.",
    chosenKey,
  ),
  databaseUrl: optional.url(
    "MILLWRIGHT_DATABASE_URL",
    "An external PostgreSQL server, on which one database per service is created. If absent, PostgreSQL is embedded.",
    { secret: true },
  ),
  natsUrl: optional.url(
    "MILLWRIGHT_NATS_URL",
    "A NATS server with JetStream, to which [lifecycle events](../events.md) are published. If absent, they are not published.",
    { secret: true },
  ),
  workers: optional.int(
    "MILLWRIGHT_WORKERS",
    "Number of worker processes that are started and supervised with the platform.",
    { default: 1, max: 100 },
  ),
  workerSlots: worker.slots,
  sandbox: worker.sandbox,
  localRepositoryRoots: orchestrator.localRepositoryRoots,
  gitCaFile: factories.gitCaFile,
  headPollMs: factories.headPollMs,
  egressRanges: gateway.egressRanges,
  /** By default the local machine, if only its own users can reach the platform. */
  allowedInternalHosts: orchestrator.allowedInternalHosts,
  ...modelSettings,
  snapshotDays: orchestrator.snapshotDays,
  runEventDays: orchestrator.runEventDays,
  artifactDays: orchestrator.artifactDays,
  scoringCoolDownMs: scoring.coolDownMs,
  scoringTrialsPerTeam: scoring.trialsPerTeam,
  slotDays: scheduler.slotDays,
  eventRetentionDays,
  auditRetentionDays: gateway.auditRetentionDays,
  ...signInSettings,
  timeScale: orchestrator.timeScale,
  log: optional.string(
    "MILLWRIGHT_LOG",
    '"-" writes JSON lines to standard output; otherwise a file. Default: `logs/millwright.log` in the data directory.',
    { default: "" },
  ),
  logLevel,
  tracing: tracingSettings,
};

/** Reads the configuration of `npm start`. Throws one error that lists every problem. */
export const loadConfig = (env: Env) => {
  const values = readConfig(env, settings, [bucketRule, signInRule]);
  const tracing = tracingOf(values.tracing, env);
  const { host, publicUrl, webhookUrl, trustedProxies } = values;
  const internalHosts =
    values.allowedInternalHosts ?? defaultInternalHosts({ host, origins: [publicUrl, webhookUrl], trustedProxies });
  return {
    ...values,
    tracing,
    allowedInternalHosts: internalHosts,
    dataDir: resolve(values.dataDir),
    workerName: hostname(),
    /**
     * The complete environment of worker processes. Its only secrets are those that authenticate to the trace
     * collector.
     */
    workerEnvironment: {
      ...workerEnvironment(env),
      ...tracing.environment,
      MILLWRIGHT_ALLOWED_INTERNAL_HOSTS: internalHosts.join(","),
    },
  };
};
