import { createHash } from "node:crypto";
import type { V1Job, V1Secret } from "@kubernetes/client-node";
import type { LeaseRef } from "../../protocol/offer.ts";
import type { Machine, Order } from "../backend.ts";
import type { KubernetesSettings } from "./settings.ts";

/** The platform and the worker that Jobs belong to. Several workers may share a namespace. */
export type JobOwner = { readonly url: string; readonly workerId: string };

const WORKER = "millwright/worker";
const EXECUTION = "millwright/execution";
const ATTEMPT = "millwright/attempt";
const RUN = "millwright/run";
const STARTED = "millwright/started-ms";
const OFFER_DIR = "/run/millwright";
const AUTHORITIES_DIR = "/etc/millwright/authorities";
/** Memory of a pod for the worker process, in addition to the run's memory. */
const WORKER_BYTES = 512 * 1024 ** 2;
/** The size limit of the pod's `/tmp`, in bytes. */
const TMP_BYTES = 1024 ** 3;

const short = (text: string, length: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, length);

/** Returns a valid label value that identifies the worker, whatever characters its id contains. */
export const ownerLabel = ({ url, workerId }: JobOwner): string => short(`${url}\n${workerId}`, 16);

/** Returns the label selector of a worker's Jobs and pods. */
export const selectorOf = (owner: JobOwner): string => `${WORKER}=${ownerLabel(owner)}`;

/** Returns the Job name of an attempt. The name is deterministic, so creating the Job again finds the existing one. */
export const jobName = ({ executionId, attempt }: LeaseRef, owner: JobOwner): string =>
  `millwright-${executionId}-${attempt}-${ownerLabel(owner).slice(0, 8)}`;

const labelsOf = (
  { executionId, attempt, runUid }: Pick<Machine, "executionId" | "attempt" | "runUid">,
  owner: JobOwner,
  { labels }: KubernetesSettings,
): Record<string, string> => ({
  ...labels,
  "app.kubernetes.io/name": "millwright-run",
  "app.kubernetes.io/managed-by": "millwright-worker",
  [WORKER]: ownerLabel(owner),
  [EXECUTION]: String(executionId),
  [ATTEMPT]: String(attempt),
  [RUN]: runUid,
});

/** Returns the machine that a Job represents, or undefined if the Job lacks the labels that this backend writes. */
export function machineOf({ metadata }: Pick<V1Job, "metadata">): Machine | undefined {
  const { labels = {}, annotations = {} } = metadata ?? {};
  const [execution, attempt, runUid, started] = [labels[EXECUTION], labels[ATTEMPT], labels[RUN], annotations[STARTED]];
  if (!execution || !attempt || runUid === undefined || !/^\d+$/.test(execution + attempt)) return undefined;
  return { executionId: BigInt(execution), attempt: Number(attempt), runUid, startedMs: Number(started ?? 0) };
}

/**
 * Returns the Job of an execution. It runs the worker in one-run mode in a single pod, which is never replaced. The pod
 * does not run as root; it has no capabilities and no service account token, and it can write only to its own volumes.
 * The offer token is its only secret.
 */
export function jobManifest(order: Order, owner: JobOwner, settings: KubernetesSettings, startedMs: number): V1Job {
  const labels = labelsOf(order, owner, settings);
  const { dockerImage, instanceShape } = order;
  const cpus = instanceShape?.vcpus || settings.cpus;
  const memory = instanceShape?.memoryGb ? instanceShape.memoryGb * 1024 ** 3 : settings.memoryBytes;
  const resources = { cpu: String(cpus), memory: String(memory + WORKER_BYTES) };
  const seconds = (ms: number): number => Math.max(1, Math.round(ms / 1_000));
  const { authorities } = settings;
  const caFile = authorities && `${AUTHORITIES_DIR}/${authorities.key}`;
  const environment = {
    ...settings.forwarded,
    ...(caFile && { NODE_EXTRA_CA_CERTS: caFile, MILLWRIGHT_GIT_CA_FILE: caFile }),
    ...{
      MILLWRIGHT_URL: owner.url,
      MILLWRIGHT_WORKER_OFFER_FILE: `${OFFER_DIR}/offer`,
      MILLWRIGHT_WORKER_DIR: "/work/worker",
      HOME: "/work",
    },
    ...{
      MILLWRIGHT_SANDBOX_MEMORY: String(memory),
      MILLWRIGHT_SANDBOX_MEMORY_MAX: String(memory),
      MILLWRIGHT_SANDBOX_CPUS: String(cpus),
    },
    MILLWRIGHT_WORKER_DRAIN: `${seconds(settings.graceMs / 2)}s`,
    ...(settings.images.has(dockerImage) ? { MILLWRIGHT_WORKER_IMAGE: dockerImage } : {}),
  };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: jobName(order, owner), labels, annotations: { [STARTED]: String(startedMs) } },
    spec: {
      completions: 1,
      parallelism: 1,
      backoffLimit: 0,
      podReplacementPolicy: "Failed",
      activeDeadlineSeconds: seconds(settings.deadlineMs),
      ttlSecondsAfterFinished: seconds(settings.ttlMs),
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: "Never",
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          serviceAccountName: settings.serviceAccount || undefined,
          imagePullSecrets:
            settings.imagePullSecrets.length === 0 ? undefined : settings.imagePullSecrets.map((name) => ({ name })),
          nodeSelector: Object.keys(settings.nodeSelector).length === 0 ? undefined : { ...settings.nodeSelector },
          tolerations:
            settings.tolerations.length === 0
              ? undefined
              : settings.tolerations.map((toleration) => ({ ...toleration })),
          terminationGracePeriodSeconds: seconds(settings.graceMs),
          securityContext: {
            runAsNonRoot: true,
            runAsUser: settings.user,
            runAsGroup: settings.user,
            fsGroup: settings.user,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [
            {
              name: "worker",
              image: settings.images.get(dockerImage) ?? settings.image,
              imagePullPolicy: settings.imagePullPolicy,
              env: Object.entries(environment).map(([name, value]) => ({ name, value })),
              resources: { requests: resources, limits: resources },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ["ALL"] },
              },
              terminationMessagePolicy: "FallbackToLogsOnError",
              volumeMounts: [
                { name: "work", mountPath: "/work" },
                { name: "tmp", mountPath: "/tmp" },
                { name: "offer", mountPath: OFFER_DIR, readOnly: true },
                ...(authorities ? [{ name: "authorities", mountPath: AUTHORITIES_DIR, readOnly: true }] : []),
              ],
            },
          ],
          volumes: [
            { name: "work", emptyDir: { sizeLimit: String(settings.diskBytes) } },
            { name: "tmp", emptyDir: { sizeLimit: String(TMP_BYTES) } },
            { name: "offer", secret: { secretName: jobName(order, owner), defaultMode: 0o440 } },
            ...(authorities ? [{ name: "authorities", configMap: { name: authorities.configMap } }] : []),
          ],
        },
      },
    },
  };
}

/** Returns the secret with the offer token. Its owner is the Job, so it is deleted with the Job. */
export function offerSecret(order: Order, owner: JobOwner, settings: KubernetesSettings, jobUid: string): V1Secret {
  const name = jobName(order, owner);
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name,
      labels: labelsOf(order, owner, settings),
      ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name, uid: jobUid }],
    },
    immutable: true,
    type: "Opaque",
    stringData: { offer: order.offerToken },
  };
}
