import type { V1ContainerStatus, V1Job, V1Pod } from "@kubernetes/client-node";
import { MachineFailed } from "../backend.ts";

/** Kubelets retry these errors without a limit. The run fails instead, because a wrong image name does not recover. */
const IMAGE_FAULTS = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "RegistryUnavailable",
]);
const CREATE_FAULTS = new Set([
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
  "ContainerCannotRun",
  "StartError",
]);

/**
 * Returns why a pod cannot run its execution, or undefined while it can. A worker that ended by itself has already
 * reported the cause to the platform. A pod that succeeded is not a fault if its execution was accepted.
 */
export function faultOfPod(
  pod: V1Pod,
  {
    nowMs,
    unschedulableMs,
    isTaken,
  }: { readonly nowMs: number; readonly unschedulableMs: number; readonly isTaken: boolean },
): MachineFailed | undefined {
  const { phase, reason, message, conditions = [], containerStatuses = [] } = pod.status ?? {};
  const disrupted = conditions.find(({ type, status }) => type === "DisruptionTarget" && status === "True");
  if (phase === "Failed" && (reason === "Evicted" || disrupted))
    return new MachineFailed("evicted", `The pod was evicted${colon(message ?? disrupted?.message)}.`);
  for (const status of containerStatuses) {
    const fault = faultOfContainer(status, isTaken);
    if (fault) return fault;
  }
  if (phase === "Failed")
    return new MachineFailed("pod_failed", `The pod failed${colon([reason, message].filter(Boolean).join(": "))}.`);
  if (phase === "Succeeded")
    return isTaken ? undefined : new MachineFailed("machine_ended", "The pod ended before it accepted its run.");
  const scheduled = conditions.find(({ type, status }) => type === "PodScheduled" && status === "False");
  if (phase === "Pending" && scheduled?.reason === "Unschedulable") {
    const since = (scheduled.lastTransitionTime ?? pod.metadata?.creationTimestamp)?.getTime() ?? nowMs;
    if (nowMs - since >= unschedulableMs)
      return new MachineFailed("unschedulable", `The pod cannot be scheduled on any node${colon(scheduled.message)}.`);
  }
  return undefined;
}

/** Returns the fault of a failed Job. The Job reports the failure even after its pod was deleted. */
export function faultOfJob({ status }: V1Job): MachineFailed | undefined {
  const failed = status?.conditions?.find(({ type, status: is }) => type === "Failed" && is === "True");
  if (!failed) return undefined;
  if (failed.reason === "DeadlineExceeded")
    return new MachineFailed("active_deadline", "The pod exceeded its maximum lifetime.");
  return new MachineFailed(
    "job_failed",
    `The Job failed${colon([failed.reason, failed.message].filter(Boolean).join(": "))}.`,
  );
}

function faultOfContainer({ image, state, lastState }: V1ContainerStatus, isTaken: boolean): MachineFailed | undefined {
  const { waiting } = state ?? {};
  if (waiting?.reason && IMAGE_FAULTS.has(waiting.reason))
    return new MachineFailed(
      "image_pull",
      `The image ${image} cannot be pulled (${waiting.reason})${colon(waiting.message)}.`,
    );
  if (waiting?.reason && CREATE_FAULTS.has(waiting.reason))
    return new MachineFailed(
      "container_create",
      `The container cannot be started (${waiting.reason})${colon(waiting.message)}.`,
    );
  const terminated = state?.terminated ?? lastState?.terminated;
  if (!terminated) return undefined;
  if (terminated.reason === "OOMKilled")
    return new MachineFailed("container_oom", "The pod exceeded its memory limit and was killed.");
  if (CREATE_FAULTS.has(terminated.reason ?? ""))
    return new MachineFailed(
      "container_create",
      `The container could not be started (${terminated.reason})${colon(terminated.message)}.`,
    );
  if (terminated.exitCode === 0)
    return isTaken ? undefined : new MachineFailed("machine_ended", "The pod ended before it accepted its run.");
  return new MachineFailed(
    "machine_ended",
    `The worker in the pod ended with exit code ${terminated.exitCode} before its run had ended${colon(terminated.message)}.`,
  );
}

const TEXT_CHARS_MAX = 500;

const colon = (text: string | undefined): string => {
  const trimmed = text?.trim().replace(/\.$/, "") ?? "";
  return trimmed === "" ? "" : `: ${trimmed.slice(-TEXT_CHARS_MAX)}`;
};
