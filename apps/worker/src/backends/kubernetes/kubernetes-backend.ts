import type { V1Job, V1Pod } from "@kubernetes/client-node";
import type { Clock } from "@millwright/clock";
import { bestEffort } from "@millwright/errors";
import { uidOf } from "@millwright/ids";
import type { Logger } from "@millwright/telemetry";
import { pause, type Timers } from "../../time/timers.ts";
import { MachineFailed, type Backend, type Machine, type Order } from "../backend.ts";
import { ClusterRefusal, type Cluster } from "./cluster.ts";
import { jobManifest, jobName, machineOf, offerSecret, selectorOf, type JobOwner } from "./manifests.ts";
import { faultOfJob, faultOfPod } from "./pod-faults.ts";
import type { KubernetesSettings } from "./settings.ts";

export type KubernetesBackendDeps = {
  readonly cluster: Cluster;
  readonly owner: JobOwner;
  readonly settings: KubernetesSettings;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /**
   * The delay before a failed call is retried or an ended stream is reopened. Each further delay is 1.5 times the
   * previous one.
   */
  readonly retryMs?: number;
};

const TRIES = 6;
const RETRY_MS = 1_000;

/** The Jobs and pods of this worker in the cluster at one point in time, by Job name. */
type Snapshot = { readonly jobs: ReadonlyMap<string, V1Job>; readonly pods: ReadonlyMap<string, V1Pod> };

/**
 * Runs machines as Jobs of a cluster, one Job per attempt. Stores nothing on disk: the labels of the Jobs contain the
 * state.
 */
export function kubernetesBackend({
  cluster,
  owner,
  settings,
  clock,
  timers,
  log,
  retryMs = RETRY_MS,
}: KubernetesBackendDeps): Backend {
  const selector = selectorOf(owner);
  const never = new AbortController().signal;
  let reading: Promise<Snapshot> | undefined;
  /**
   * Names of Jobs that were requested and have not yet appeared in a list. If such a Job is missing in a list, it may
   * be too new, so this is not a fault.
   */
  const unseen = new Set<string>();

  /** Reads the cluster. Concurrent callers share one read. */
  function readCluster(): Promise<Snapshot> {
    reading ??= (async () => {
      try {
        const [jobs, pods] = await Promise.all([cluster.listJobs(selector), cluster.listPods(selector)]);
        return {
          jobs: new Map(jobs.map((job) => [job.metadata?.name ?? "", job])),
          pods: new Map(pods.map((pod) => [jobOf(pod), pod])),
        };
      } finally {
        reading = undefined;
      }
    })();
    return reading;
  }

  async function withRetries<T>(act: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await act();
      } catch (error) {
        if (error instanceof ClusterRefusal || tries === TRIES) throw error;
        log.warn({ operation: "kubernetes", error }, "a call to the cluster failed; retrying");
        await pause(timers, retryMs * 1.5 ** (tries - 1), never);
      }
    }
  }

  /** Creates the Job, or returns the existing Job if an earlier call created it and its response was lost. */
  async function createJob(order: Order, startedMs: number): Promise<V1Job> {
    const created = await cluster.createJob(jobManifest(order, owner, settings, startedMs));
    if (created !== "exists") return created;
    const existing = await cluster.getJob(jobName(order, owner));
    if (!existing) throw new Error("The Job existed and was deleted concurrently.");
    if (machineOf(existing)?.executionId !== order.executionId)
      throw new ClusterRefusal("A Job of another execution has the same name.");
    return existing;
  }

  return {
    name: "kubernetes",
    images: settings.images.size > 0 ? [...settings.images.keys()] : undefined,
    instanceUid: async () => uidOf(`worker of ${owner.url}\n${owner.workerId}`),
    async known() {
      const jobs = await withRetries(() => cluster.listJobs(selector));
      return jobs.filter((job) => !hasEnded(job)).flatMap((job) => machineOf(job) ?? []);
    },
    async start(order, startedMs) {
      try {
        await withRetries(async () => {
          unseen.add(jobName(order, owner));
          const job = await createJob(order, startedMs);
          await cluster.createSecret(offerSecret(order, owner, settings, job.metadata?.uid ?? ""));
        });
      } catch (error) {
        log.warn(
          { operation: "start", executionId: String(order.executionId), attempt: order.attempt, error },
          "no Job could be created",
        );
        throw new MachineFailed(
          "job_create",
          error instanceof ClusterRefusal
            ? `The cluster rejected the Job: ${error.message}`
            : "The Job could not be requested from the cluster.",
        );
      }
    },
    async faultOf(machine, isTaken) {
      const name = jobName(machine, owner);
      const { jobs, pods } = await readCluster();
      const [job, pod] = [jobs.get(name), pods.get(name)];
      if (job) unseen.delete(name);
      const fault =
        pod && faultOfPod(pod, { nowMs: clock.now().getTime(), unschedulableMs: settings.unschedulableMs, isTaken });
      if (fault) return fault;
      if (job) return faultOfJob(job);
      return pod || unseen.has(name) ? undefined : new MachineFailed("job_deleted", "The Job was deleted.");
    },
    async end(machine: Machine) {
      const name = jobName(machine, owner);
      await cluster.deleteJob(name);
      unseen.delete(name);
    },
    forget: async (machine) => void unseen.delete(jobName(machine, owner)),
    watch(changed, signal) {
      let isDue = false;
      /** Pods change in bursts: one check serves all changes within a short delay. */
      const soon = (): void => {
        if (isDue) return;
        isDue = true;
        timers.after(retryMs / 4, () => ((isDue = false), changed()));
      };
      void (async () => {
        for (let wait = retryMs; !signal.aborted; wait = Math.min(wait * 1.5, retryMs * 30)) {
          await bestEffort("watch pods", log, () =>
            cluster.watchPods(selector, () => ((wait = retryMs), soon()), signal),
          );
          await pause(timers, wait, signal).catch(() => {});
        }
      })();
    },
  };
}

const jobOf = ({ metadata }: V1Pod): string =>
  metadata?.labels?.["batch.kubernetes.io/job-name"] ?? metadata?.labels?.["job-name"] ?? "";

const hasEnded = ({ status }: V1Job): boolean =>
  status?.conditions?.some(({ type, status: is }) => (type === "Complete" || type === "Failed") && is === "True") ===
  true;
