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

/** Reads all settings of `npm start`. */
export const loadConfig = (env: Env) => {
  const values = readConfig(env, {
    /** The public port. 0 selects a free port. */
    port: optional.int("PORT", 8080),
    /** Listen address. */
    host: optional.string("HOST", "127.0.0.1"),
    /** Directory of the database cluster, blobs, master key and logs. */
    dataDir: optional.string("MILLWRIGHT_DATA_DIR", ".millwright"),
    /** Bucket for blobs. If absent, blobs are stored in `blobs/` of the data directory. */
    blobUrl: blobSettings.blobUrl,
    ...bucketSettings,
    /** Origin of links and signed URLs. Default: `http://HOST:PORT`. */
    publicUrl: optional.url("MILLWRIGHT_PUBLIC_URL"),
    /** Origin that senders of webhooks use. Default: the public URL. */
    webhookUrl: optional.url("MILLWRIGHT_WEBHOOK_URL"),
    /**
     * Addresses and networks of the proxies in front of the platform, separated by commas. Their `X-Forwarded-For`
     * header is trusted for the sender address of a webhook.
     */
    trustedProxies: optional.list("MILLWRIGHT_TRUSTED_PROXIES", []),
    /** API key of the first team's owner. If absent, a key is generated and printed once. */
    bootstrapApiKey: chosenKey("MILLWRIGHT_BOOTSTRAP_API_KEY"),
    /**
     * Key that gives access to `/metrics` only, for Prometheus. If absent, only platform administrators can read
     * `/metrics`.
     */
    metricsKey: chosenKey("MILLWRIGHT_METRICS_KEY"),
    /**
     * An external PostgreSQL server, on which one database per service is created. If absent, PostgreSQL is embedded.
     */
    databaseUrl: optional.url("MILLWRIGHT_DATABASE_URL"),
    /** A NATS server with JetStream, to which lifecycle events are published. If absent, they are not published. */
    natsUrl: optional.url("MILLWRIGHT_NATS_URL"),
    /** Number of worker processes that are started and supervised with the platform. */
    workers: optional.int("MILLWRIGHT_WORKERS", 1),
    /** Maximum number of concurrent runs per worker. */
    workerSlots: optional.int("MILLWRIGHT_WORKER_SLOTS", 4),
    /** "auto", "bwrap", "none" or "optional"; validated by the worker. */
    sandbox: optional.string("MILLWRIGHT_SANDBOX", "auto"),
    /** Directories that may contain local code hosts and definition repositories. Default: none. */
    localRepositoryRoots: optional.list("MILLWRIGHT_LOCAL_REPOSITORY_ROOTS", []),
    /** PEM file with additional certificate authorities for the hosts of definition repositories. */
    gitCaFile: optional.string("MILLWRIGHT_GIT_CA_FILE"),
    /** Interval between polls of the head of a tracked branch. */
    headPollMs: optional.duration("MILLWRIGHT_BRANCH_POLL_INTERVAL", "30s"),
    egressRanges: egressRangesSetting,
    /**
     * Internal hosts and networks that addresses set by teams may resolve to. By default the local machine, if only its
     * own users can reach the platform.
     */
    allowedInternalHosts,
    ...modelSettings,
    /** Days for which the newest workspace of a conversation is retained for a follow-up. */
    snapshotDays: optional.int("MILLWRIGHT_SNAPSHOT_DAYS", 30),
    /** Time for which a run must have been terminal before it is scored automatically. */
    scoringCoolDownMs: optional.duration("MILLWRIGHT_SCORING_COOL_DOWN", "30s"),
    /** Maximum number of concurrent benchmark trials of one team. */
    scoringTrialsPerTeam: optional.int("MILLWRIGHT_SCORING_TRIALS_PER_TEAM", 8),
    /** Days for which schedules retain the outcome of their slots. */
    slotDays: optional.int("MILLWRIGHT_SLOT_DAYS", 90),
    /** Divisor of all lease, offer and heartbeat times, for failure tests. */
    timeScale: optional.int("MILLWRIGHT_TIME_SCALE", 1),
    /**
     * "-" writes JSON lines to standard output; otherwise a file. Default: `logs/millwright.log` in the data directory.
     */
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
