import { blobRule, blobSettings, bucketRule, bucketSettings } from "@millwright/blobs";
import { optional, readConfig, type Env } from "@millwright/config";
import { allowedInternalHosts } from "@millwright/outbound";
import { callerSettings, serviceRules, serviceSettings, timeScale, upstreamSettings } from "@millwright/service";
import { modelSettings } from "./catalog/model-settings.ts";

/** Every environment variable of this service; libs/service has those of all services. */
export const settings = {
  ...serviceSettings,
  ...upstreamSettings("gateway", "factories"),
  ...callerSettings("scheduler", "scoring", "metrics"),
  ...blobSettings,
  ...bucketSettings,
  localRepositoryRoots: optional.list(
    "MILLWRIGHT_LOCAL_REPOSITORY_ROOTS",
    "Directories that may contain local code hosts and definition repositories. Default: none.",
    { default: [] },
  ),
  allowedInternalHosts,
  timeScale,
  snapshotDays: optional.int(
    "MILLWRIGHT_SNAPSHOT_DAYS",
    "For how many days the newest workspace of a conversation is retained for a follow-up.",
    { default: 30, max: 36_500 },
  ),
  runEventDays: optional.int(
    "MILLWRIGHT_RUN_EVENT_RETENTION_DAYS",
    "Days after the end of a conversation's last run for which [what its agents did](retention.md#ended-runs) is retained: events, transcripts, terminal output; 0: forever.",
    { default: 0, max: 36_500 },
  ),
  artifactDays: optional.int(
    "MILLWRIGHT_ARTIFACT_RETENTION_DAYS",
    "Days after that end for which plans, files and screenshots are retained; 0: forever.",
    { default: 0, max: 36_500 },
  ),
  ...modelSettings,
};

/** Reads the configuration. Throws one error that lists every problem. */
export const loadConfig = (env: Env) => readConfig(env, settings, [...serviceRules, blobRule, bucketRule]);
