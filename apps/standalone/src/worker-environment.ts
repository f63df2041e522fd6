import { delimiter, resolve } from "node:path";
import type { Env } from "@millwright/config";

/** Environment variables that workers inherit. No other variable of the platform's environment is passed to them. */
const INHERITED = [
  "PATH",
  "HOME",
  "LANG",
  "TZ",
  "MILLWRIGHT_BACKEND",
  "MILLWRIGHT_BACKEND_CANCEL_COMMAND",
  "MILLWRIGHT_BACKEND_COMMAND_TIMEOUT",
  "MILLWRIGHT_BACKEND_DISPATCH_COMMAND",
  "MILLWRIGHT_BACKEND_HARNESSES",
  "MILLWRIGHT_BACKEND_START_TIMEOUT",
  "MILLWRIGHT_EGRESS_ALLOW",
  "MILLWRIGHT_EGRESS_INTERNAL",
  "MILLWRIGHT_KUBERNETES_CA_CONFIG_MAP",
  "MILLWRIGHT_KUBERNETES_CPUS",
  "MILLWRIGHT_KUBERNETES_DEADLINE",
  "MILLWRIGHT_KUBERNETES_DISK",
  "MILLWRIGHT_KUBERNETES_GRACE",
  "MILLWRIGHT_KUBERNETES_IMAGE",
  "MILLWRIGHT_KUBERNETES_IMAGES",
  "MILLWRIGHT_KUBERNETES_IMAGE_PULL_POLICY",
  "MILLWRIGHT_KUBERNETES_IMAGE_PULL_SECRETS",
  "MILLWRIGHT_KUBERNETES_LABELS",
  "MILLWRIGHT_KUBERNETES_MEMORY",
  "MILLWRIGHT_KUBERNETES_NAMESPACE",
  "MILLWRIGHT_KUBERNETES_NODE_SELECTOR",
  "MILLWRIGHT_KUBERNETES_SERVICE_ACCOUNT",
  "MILLWRIGHT_KUBERNETES_TOLERATIONS",
  "MILLWRIGHT_KUBERNETES_TTL",
  "MILLWRIGHT_KUBERNETES_UNSCHEDULABLE_TIMEOUT",
  "MILLWRIGHT_KUBERNETES_USER",
  "MILLWRIGHT_PARKED_WORKSPACES",
  "MILLWRIGHT_REPOSITORY_CACHE",
  "MILLWRIGHT_SANDBOX_CGROUP",
  "MILLWRIGHT_SANDBOX_CPUS",
  "MILLWRIGHT_SANDBOX_DISK",
  "MILLWRIGHT_SANDBOX_FILE",
  "MILLWRIGHT_SANDBOX_FILES",
  "MILLWRIGHT_SANDBOX_MEMORY",
  "MILLWRIGHT_SANDBOX_MEMORY_MAX",
  "MILLWRIGHT_SANDBOX_PROCESSES",
  "MILLWRIGHT_SANDBOX_ROOTFS",
  "MILLWRIGHT_SANDBOX_START_TIMEOUT",
  "MILLWRIGHT_SANDBOX_TMP",
  "MILLWRIGHT_WORKER_SKILLS",
  "MILLWRIGHT_WORKER_USER",
];

/**
 * Inherited settings that contain a file path. A worker has its own working directory, so relative paths are resolved
 * here.
 */
const INHERITED_FILES = [
  "MILLWRIGHT_GIT_CA_FILE",
  "MILLWRIGHT_HARNESS_CLAUDE",
  "MILLWRIGHT_HARNESS_CODEX",
  "MILLWRIGHT_HARNESS_GEMINI",
  "MILLWRIGHT_HARNESS_OPENCODE",
  "MILLWRIGHT_KUBERNETES_KUBECONFIG",
  "NODE_EXTRA_CA_CERTS",
];

/**
 * Returns the part of the platform's environment that worker processes inherit. It excludes the keys of model
 * providers, databases, buckets and of the first owner.
 */
export function workerEnvironment(env: Env): Record<string, string> {
  const inherited: Record<string, string> = {};
  for (const name of INHERITED) if (env[name] !== undefined) inherited[name] = env[name];
  for (const name of INHERITED_FILES) if (env[name]) inherited[name] = resolve(env[name]);
  const roots = env["MILLWRIGHT_LOCAL_REPOSITORY_ROOTS"]
    ?.split(",")
    .map((root) => root.trim())
    .filter(Boolean);
  if (roots) inherited["MILLWRIGHT_LOCAL_REPOSITORY_ROOTS"] = roots.map((root) => resolve(root)).join(",");
  if (env["KUBECONFIG"])
    inherited["KUBECONFIG"] = env["KUBECONFIG"]
      .split(delimiter)
      .map((file) => resolve(file))
      .join(delimiter);
  return inherited;
}
