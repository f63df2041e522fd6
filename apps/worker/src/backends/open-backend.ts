import type { Clock } from "@millwright/clock";
import type { Logger } from "@millwright/telemetry";
import type { Timers } from "../time/timers.ts";
import type { Backend } from "./backend.ts";
import { commandBackend, type CommandSettings } from "./command/command-backend.ts";
import type { KubernetesSettings } from "./kubernetes/settings.ts";

export type BackendBase = { readonly clock: Clock; readonly timers: Timers; readonly log: Logger };

/** The settings of all backends. */
export type BackendConfig = Omit<CommandSettings, "timeoutMs"> & {
  readonly backend: "direct" | "command" | "kubernetes";
  readonly commandTimeoutMs: number;
  /** Set for the backend "kubernetes". */
  readonly kubernetes: KubernetesSettings | undefined;
};

/**
 * Opens the configured backend. Returns undefined if executions run on this machine. Throws the errors of the backend's
 * records or of its kubeconfig.
 */
export async function openBackend(config: BackendConfig, base: BackendBase): Promise<Backend | undefined> {
  const { url, workerId, dir, dispatchCommand, cancelCommand, commandTimeoutMs: timeoutMs, hostEnv } = config;
  if (config.backend === "command")
    return commandBackend({ url, workerId, dir, dispatchCommand, cancelCommand, timeoutMs, hostEnv }, base.log);
  if (!config.kubernetes) return undefined;
  const [{ openCluster }, { kubernetesBackend }] = await Promise.all([
    import("./kubernetes/cluster.ts"),
    import("./kubernetes/kubernetes-backend.ts"),
  ]);
  return kubernetesBackend({
    ...base,
    cluster: await openCluster(config.kubernetes),
    owner: { url, workerId },
    settings: config.kubernetes,
  });
}
