import { optional, readConfig, type Env } from "@millwright/config";
import { allowedInternalHosts } from "@millwright/outbound";
import { callerSettings, serviceRules, serviceSettings, upstreamSettings } from "@millwright/service";

/** Every environment variable of this service; libs/service has those of all services. */
export const settings = {
  ...serviceSettings,
  ...upstreamSettings("gateway", "orchestrator", "scheduler", "scoring", "webhookIngress"),
  ...callerSettings("metrics"),
  localRepositoryRoots: optional.list(
    "MILLWRIGHT_LOCAL_REPOSITORY_ROOTS",
    "Directories that may contain local code hosts and definition repositories. Default: none.",
    { default: [] },
  ),
  gitCaFile: optional.string(
    "MILLWRIGHT_GIT_CA_FILE",
    "A PEM file with the certificate authorities for hosts of definition repositories, instead of the machine's.",
  ),
  headPollMs: optional.duration(
    "MILLWRIGHT_BRANCH_POLL_INTERVAL",
    "Interval of polling the head of a [tracked branch](../guides/definition-as-code.md#branches).",
    { default: "30s", min: "1ms" },
  ),
  allowedInternalHosts,
};

/** Reads the configuration. Throws one error that lists every problem. */
export const loadConfig = (env: Env) => readConfig(env, settings, serviceRules);
