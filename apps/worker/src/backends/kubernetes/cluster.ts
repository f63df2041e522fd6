import { readFileSync } from "node:fs";
import type { V1Job, V1Pod, V1Secret } from "@kubernetes/client-node";
import type { KubernetesSettings } from "./settings.ts";

/**
 * The operations of a cluster that the backend requires, all in one namespace. Throws `ClusterRefusal` for permanent
 * errors and any other error for transient ones.
 */
export interface Cluster {
  /** Creates a Job. Returns "exists" if a Job of that name exists. */
  createJob(job: V1Job): Promise<V1Job | "exists">;
  getJob(name: string): Promise<V1Job | undefined>;
  listJobs(selector: string): Promise<readonly V1Job[]>;
  /** Deletes a Job with its pod and secret. Does nothing if the Job does not exist. */
  deleteJob(name: string): Promise<void>;
  /** Creates a secret. Does nothing if a secret of that name exists. */
  createSecret(secret: V1Secret): Promise<void>;
  listPods(selector: string): Promise<readonly V1Pod[]>;
  /**
   * Calls `changed` at each change of the selected pods. Resolves when the stream has ended for any reason. Throws if
   * the stream cannot be opened.
   */
  watchPods(selector: string, changed: () => void, signal: AbortSignal): Promise<void>;
}

/** A permanent error: the cluster rejects the request, and a retry would not help. The message is the cluster's own. */
export class ClusterRefusal extends Error {}

const CALL_TIMEOUT_MS = 15_000;
const PAGE = 500;
const POD_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/** Client error codes that are transient: a retry may succeed. */
const TRANSIENT = new Set([408, 409, 410, 425, 429]);

/**
 * Opens a cluster through the Kubernetes API. The client library is imported here, so that workers without this backend
 * do not load it. Throws the errors of reading the kubeconfig.
 */
export async function openCluster({
  kubeconfig,
  namespace: wanted,
}: Pick<KubernetesSettings, "kubeconfig" | "namespace">): Promise<Cluster> {
  const { ApiException, BatchV1Api, CoreV1Api, KubeConfig, Watch } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (kubeconfig === "") config.loadFromDefault();
  else config.loadFromFile(kubeconfig);
  const namespace = wanted || config.getContextObject(config.currentContext)?.namespace || ownNamespace() || "default";
  const [batch, core, watch] = [config.makeApiClient(BatchV1Api), config.makeApiClient(CoreV1Api), new Watch(config)];
  const codeOf = (error: unknown): number => (error instanceof ApiException ? error.code : 0);

  /**
   * Runs `act` for at most `CALL_TIMEOUT_MS`. Throws `ClusterRefusal` if the cluster rejects the request permanently.
   */
  const call = async <T>(act: () => Promise<T>): Promise<T> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error("The cluster did not respond in time.")), CALL_TIMEOUT_MS);
    });
    try {
      return await Promise.race([act(), late]);
    } catch (error) {
      const code = codeOf(error);
      throw code >= 400 && code < 500 && !TRANSIENT.has(code)
        ? new ClusterRefusal(messageOf(error), { cause: error })
        : error;
    } finally {
      clearTimeout(timer);
    }
  };
  /** Returns the result of `act`, or `otherwise` if the cluster responds with status `code`. */
  const unless = async <T, U>(code: number, otherwise: U, act: () => Promise<T>): Promise<T | U> =>
    call(() =>
      act().catch((error: unknown) => {
        if (codeOf(error) === code) return otherwise;
        throw error;
      }),
    );

  return {
    createJob: (body) => unless(409, "exists" as const, () => batch.createNamespacedJob({ namespace, body })),
    getJob: (name) => unless(404, undefined, () => batch.readNamespacedJob({ namespace, name })),
    deleteJob: async (name) =>
      void (await unless(404, undefined, () =>
        batch.deleteNamespacedJob({ namespace, name, propagationPolicy: "Background" }),
      )),
    createSecret: async (body) =>
      void (await unless(409, undefined, () => core.createNamespacedSecret({ namespace, body }))),
    listJobs: (labelSelector) =>
      everyPage((_continue) =>
        call(() => batch.listNamespacedJob({ namespace, labelSelector, limit: PAGE, ..._continue })),
      ),
    listPods: (labelSelector) =>
      everyPage((_continue) =>
        call(() => core.listNamespacedPod({ namespace, labelSelector, limit: PAGE, ..._continue })),
      ),
    async watchPods(labelSelector, changed, signal) {
      let finish = (): void => {};
      const over = new Promise<void>((resolve) => (finish = resolve));
      const stream = await watch.watch(
        `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`,
        { labelSelector },
        changed,
        () => finish(),
      );
      const stop = (): void => stream.abort();
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop);
      await over;
      signal.removeEventListener("abort", stop);
    },
  };
}

type Page<T> = { readonly items: readonly T[]; readonly metadata?: { readonly _continue?: string } };

/**
 * Returns the items of all pages. If the list expires between two pages, this throws; the next read starts again. An
 * incomplete list is never returned, because a missing Job would count as deleted.
 */
async function everyPage<T>(read: (from: { _continue?: string }) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  for (let from: { _continue?: string } = {}; ;) {
    const page = await read(from);
    items.push(...page.items);
    const next = page.metadata?.["_continue"];
    if (!next) return items;
    from = { _continue: next };
  }
}

/** Returns the message of the API's Status object. The client library's own message contains HTTP headers. */
function messageOf(error: unknown): string {
  const { body, code } = error as { body?: unknown; code?: number };
  const status = typeof body === "string" ? parsed(body) : body;
  const message = typeof status === "object" && status !== null && "message" in status ? status.message : undefined;
  return typeof message === "string" ? message : `The cluster responded with status ${code}.`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function ownNamespace(): string {
  try {
    return readFileSync(POD_NAMESPACE, "utf8").trim();
  } catch {
    return ""; // the worker does not run in a pod
  }
}
