import { hostname } from "node:os";
import { resolve } from "node:path";
import { blobSettings, bucketSettings } from "@millwright/blobs";
import { optional, readConfig, type Env } from "@millwright/config";
import { chosenKey, egressRangesSetting } from "@millwright/gateway/compose";
import { allowedInternalHosts, defaultInternalHosts } from "@millwright/outbound";
import { modelSettings } from "@millwright/orchestrator/compose";
import { loadTracingSettings } from "@millwright/telemetry";
import { workerEnvironment } from "./worker-environment.ts";

export type StandaloneConfig = ReturnType<typeof loadConfig>;

/** Everything `npm start` reads (runtime contract). */
export const loadConfig = (env: Env) => {
  const values = readConfig(env, {
    /** The one public port; 0 takes a free one. */
    port: optional.int("PORT", 8080),
    /** Listen address. */
    host: optional.string("HOST", "127.0.0.1"),
    /** Database cluster, blobs, master key, logs. */
    dataDir: optional.string("MILLWRIGHT_DATA_DIR", ".millwright"),
    /** A bucket for blobs; absent: `blobs/` in the data directory. */
    blobUrl: blobSettings.blobUrl,
    ...bucketSettings,
    /** Origin used in links and signed URLs; default `http://HOST:PORT`. */
    publicUrl: optional.url("MILLWRIGHT_PUBLIC_URL"),
    /** Origin under which senders of webhooks reach the port; default: the public URL. */
    webhookUrl: optional.url("MILLWRIGHT_WEBHOOK_URL"),
    /** Addresses and networks of proxies in front of it, with commas between: whose `X-Forwarded-For` names the sender of a webhook. */
    trustedProxies: optional.list("MILLWRIGHT_TRUSTED_PROXIES", []),
    /** API key of the first team's owner; generated and printed once when absent. */
    bootstrapApiKey: chosenKey("MILLWRIGHT_BOOTSTRAP_API_KEY"),
    /** Reads `/metrics` and nothing else, for Prometheus; absent: only platform administrators read it. */
    metricsKey: chosenKey("MILLWRIGHT_METRICS_KEY"),
    /** An external PostgreSQL server; one database per service is created there. Absent: embedded PostgreSQL. */
    databaseUrl: optional.url("MILLWRIGHT_DATABASE_URL"),
    /** A NATS server with JetStream, to which the lifecycle events are published. Absent: nowhere. */
    natsUrl: optional.url("MILLWRIGHT_NATS_URL"),
    /** Worker processes started and supervised with the platform. */
    workers: optional.int("MILLWRIGHT_WORKERS", 1),
    /** Runs at once per worker. */
    workerSlots: optional.int("MILLWRIGHT_WORKER_SLOTS", 4),
    /** "auto", "bwrap", "none" or "optional"; checked by the worker. */
    sandbox: optional.string("MILLWRIGHT_SANDBOX", "auto"),
    /** Directories below which local code hosts and definition repositories may lie; none by default. */
    localRepositoryRoots: optional.list("MILLWRIGHT_LOCAL_REPOSITORY_ROOTS", []),
    /** A file with further certificate authorities that the hosts of definition repositories may have (PEM). */
    gitCaFile: optional.string("MILLWRIGHT_GIT_CA_FILE"),
    /** Between two looks at the head of a tracked branch. */
    headPollMs: optional.duration("MILLWRIGHT_BRANCH_POLL_INTERVAL", "30s"),
    egressRanges: egressRangesSetting,
    /** Internal hosts and networks that addresses set by teams may lead to; by default this machine, if only its own users reach the platform. */
    allowedInternalHosts,
    ...modelSettings,
    /** How long the newest workspace of a conversation is kept for a follow-up. */
    snapshotDays: optional.int("MILLWRIGHT_SNAPSHOT_DAYS", 30),
    /** How long a run must have been terminal before it is scored automatically. */
    scoringCoolDownMs: optional.duration("MILLWRIGHT_SCORING_COOL_DOWN", "30s"),
    /** Benchmark trials of one team that run at once. */
    scoringTrialsPerTeam: optional.int("MILLWRIGHT_SCORING_TRIALS_PER_TEAM", 8),
    /** How long schedules tell what became of a slot. */
    slotDays: optional.int("MILLWRIGHT_SLOT_DAYS", 90),
    /** Divides every lease, offer and heartbeat time; for tests of failures. */
    timeScale: optional.int("MILLWRIGHT_TIME_SCALE", 1),
    /** "-" = JSON lines to standard output; otherwise a file, by default `logs/millwright.log` in the data directory. */
    log: optional.string("MILLWRIGHT_LOG", ""),
    /** "debug", "info", "warn" or "error". */
    logLevel: optional.string("LOG_LEVEL", "info"),
  });
  const tracing = loadTracingSettings(env);
  const { host, publicUrl, webhookUrl, trustedProxies } = values;
  const internalHosts =
    values.allowedInternalHosts ?? defaultInternalHosts({ host, origins: [publicUrl, webhookUrl], trustedProxies });
  return {
    ...values,
    tracing,
    allowedInternalHosts: internalHosts,
    dataDir: resolve(values.dataDir),
    workerName: hostname(),
    /** All that worker processes inherit; the only secrets are those that authenticate to the collector of spans. */
    workerEnvironment: {
      ...workerEnvironment(env),
      ...tracing.environment,
      MILLWRIGHT_ALLOWED_INTERNAL_HOSTS: internalHosts.join(","),
    },
  };
};
