import { optional, readConfig, type Env } from "@millwright/config";

/** Reads the operator's settings of the Kubernetes backend, which determine the Jobs that it creates. */
function readSettings(env: Env) {
  return readConfig(env, {
    /** The worker image. Its entry point must run `main.ts` of this app. */
    image: optional.string("MILLWRIGHT_KUBERNETES_IMAGE", ""),
    /**
     * Worker images for runs that name an image, as `image=worker image`. If set, the worker accepts only runs of these
     * images. If empty, the worker image above serves every image.
     */
    images: optional.list("MILLWRIGHT_KUBERNETES_IMAGES", []),
    /** The namespace of the Jobs. Default: the namespace of the worker's own pod, or of the current context. */
    namespace: optional.string("MILLWRIGHT_KUBERNETES_NAMESPACE", ""),
    /** The path of a kubeconfig file. Default: `KUBECONFIG`, `~/.kube/config`, or the pod's own service account. */
    kubeconfig: optional.string("MILLWRIGHT_KUBERNETES_KUBECONFIG", ""),
    imagePullPolicy: optional.string("MILLWRIGHT_KUBERNETES_IMAGE_PULL_POLICY", "IfNotPresent"),
    imagePullSecrets: optional.list("MILLWRIGHT_KUBERNETES_IMAGE_PULL_SECRETS", []),
    /** The service account of the pods; none by default. Its token is never mounted. */
    serviceAccount: optional.string("MILLWRIGHT_KUBERNETES_SERVICE_ACCOUNT", ""),
    /** Node labels as `label=value`. */
    nodeSelector: optional.list("MILLWRIGHT_KUBERNETES_NODE_SELECTOR", []),
    /** Tolerations as `key=value:effect`, `key:effect` for any value, or `key` for any effect. */
    tolerations: optional.list("MILLWRIGHT_KUBERNETES_TOLERATIONS", []),
    /** Additional labels of Jobs and pods, as `key=value`. */
    labels: optional.list("MILLWRIGHT_KUBERNETES_LABELS", []),
    /** Processors and memory of a run whose runner specifies none. */
    cpus: optional.int("MILLWRIGHT_KUBERNETES_CPUS", 1),
    memoryBytes: optional.size("MILLWRIGHT_KUBERNETES_MEMORY", "4G"),
    /** The maximum size of a run's workspace, home and spool together, on the node. */
    diskBytes: optional.size("MILLWRIGHT_KUBERNETES_DISK", "20G"),
    /** The user and group id that the worker runs as; never root. */
    user: optional.int("MILLWRIGHT_KUBERNETES_USER", 10_001),
    /** The maximum lifetime of a pod. */
    deadlineMs: optional.duration("MILLWRIGHT_KUBERNETES_DEADLINE", "9h"),
    /** How long a pod may continue to run after it was asked to terminate. */
    graceMs: optional.duration("MILLWRIGHT_KUBERNETES_GRACE", "60s"),
    /** How long ended Jobs are retained for inspection. */
    ttlMs: optional.duration("MILLWRIGHT_KUBERNETES_TTL", "1h"),
    /** How long a pod may wait until it can be scheduled on a node. */
    unschedulableMs: optional.duration("MILLWRIGHT_KUBERNETES_UNSCHEDULABLE_TIMEOUT", "5m"),
  });
}

/** Environment variables of this worker that are also set in its pods. */
const FORWARDED =
  /^(?:MILLWRIGHT_SANDBOX(?:_\w+)?|MILLWRIGHT_EGRESS_\w+|MILLWRIGHT_HARNESS_\w+|MILLWRIGHT_ALLOWED_INTERNAL_HOSTS|MILLWRIGHT_REPOSITORY_CACHE|LOG_LEVEL)$/;

export type Toleration = {
  readonly key: string;
  readonly operator: "Equal" | "Exists";
  readonly value?: string;
  readonly effect?: string;
};

export type KubernetesSettings = Omit<
  ReturnType<typeof readSettings>,
  "images" | "nodeSelector" | "tolerations" | "labels"
> & {
  readonly images: ReadonlyMap<string, string>;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly tolerations: readonly Toleration[];
  readonly labels: Readonly<Record<string, string>>;
  readonly forwarded: Readonly<Record<string, string>>;
};

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Reads the Kubernetes settings. Throws one error that names every invalid variable. */
export function kubernetesSettings(env: Env): KubernetesSettings {
  const settings = readSettings(env);
  const faults: string[] = [];
  const read = <T>(name: string, value: () => T, otherwise: T): T => {
    try {
      return value();
    } catch (error) {
      faults.push(`${name}: ${(error as Error).message}`);
      return otherwise;
    }
  };
  if (settings.image === "") faults.push("MILLWRIGHT_KUBERNETES_IMAGE is required by the kubernetes backend");
  if (!["Always", "IfNotPresent", "Never"].includes(settings.imagePullPolicy))
    faults.push("MILLWRIGHT_KUBERNETES_IMAGE_PULL_POLICY must be Always, IfNotPresent or Never");
  if (settings.user <= 0) faults.push("MILLWRIGHT_KUBERNETES_USER must not be root");
  if (settings.cpus <= 0) faults.push("MILLWRIGHT_KUBERNETES_CPUS must be 1 or more");
  const whole = {
    ...settings,
    images: read(
      "MILLWRIGHT_KUBERNETES_IMAGES",
      () => new Map(Object.entries(pairs(settings.images))),
      new Map<string, string>(),
    ),
    nodeSelector: read("MILLWRIGHT_KUBERNETES_NODE_SELECTOR", () => pairs(settings.nodeSelector), {}),
    tolerations: read("MILLWRIGHT_KUBERNETES_TOLERATIONS", () => settings.tolerations.map(toleration), []),
    labels: read("MILLWRIGHT_KUBERNETES_LABELS", () => pairs(settings.labels), {}),
    forwarded: Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) =>
        value !== undefined && FORWARDED.test(name) ? [[name, value]] : [],
      ),
    ),
  };
  if (faults.length > 0) throw new Error(`Invalid configuration:\n  ${faults.join("\n  ")}`);
  return Object.freeze(whole);
}

const pairs = (entries: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    entries.map((entry) => {
      const at = entry.indexOf("=");
      if (at < 1 || at === entry.length - 1) throw new Error(`${entry} is not name=value`);
      return [entry.slice(0, at), entry.slice(at + 1)];
    }),
  );

function toleration(text: string): Toleration {
  const [, key, value, effect] = /^([^=:]+)(?:=([^:]*))?(?::(\w+))?$/.exec(text) ?? [];
  if (key === undefined || (effect !== undefined && !EFFECTS.includes(effect)))
    throw new Error(`${text} is not key=value:effect`);
  return {
    key,
    ...(value === undefined ? { operator: "Exists" } : { operator: "Equal", value }),
    ...(effect === undefined ? {} : { effect }),
  };
}
