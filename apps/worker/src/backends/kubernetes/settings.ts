import { optional, partsOf, readConfig, type Env, type ValuesOf } from "@millwright/config";

/** The operator's settings of the Kubernetes backend, which determine the Jobs that it creates. */
export const kubernetesVariables = {
  image: optional.string(
    "MILLWRIGHT_KUBERNETES_IMAGE",
    "The worker image, required by the Kubernetes backend. Its entry point must start the worker.",
    { default: "" },
  ),
  images: optional.pairs(
    "MILLWRIGHT_KUBERNETES_IMAGES",
    "Worker images for runs that name an image, as `image=worker image`. If set, the worker accepts only runs of these images. If empty, the worker image above serves every image.",
    { default: "" },
  ),
  namespace: optional.string(
    "MILLWRIGHT_KUBERNETES_NAMESPACE",
    "The namespace of the Jobs. Default: the namespace of the worker's own pod, or of the current context.",
    { default: "" },
  ),
  kubeconfig: optional.string(
    "MILLWRIGHT_KUBERNETES_KUBECONFIG",
    "The path of a kubeconfig file. Default: `KUBECONFIG`, `~/.kube/config`, or the pod's own service account.",
    { default: "" },
  ),
  imagePullPolicy: optional.oneOf("MILLWRIGHT_KUBERNETES_IMAGE_PULL_POLICY", "When nodes pull the worker image.", {
    values: ["Always", "IfNotPresent", "Never"],
    default: "IfNotPresent",
  }),
  imagePullSecrets: optional.list(
    "MILLWRIGHT_KUBERNETES_IMAGE_PULL_SECRETS",
    "Secrets with which nodes pull the worker image.",
    { default: [] },
  ),
  serviceAccount: optional.string(
    "MILLWRIGHT_KUBERNETES_SERVICE_ACCOUNT",
    "The service account of the pods; none by default. Its token is never mounted.",
    { default: "" },
  ),
  authorities: optional.custom(
    "MILLWRIGHT_KUBERNETES_CA_CONFIG_MAP",
    "The ConfigMap in the Jobs' namespace and its key, as `name/key`, with the certificate authorities (PEM) of your own code hosts, models, bucket and public URL; none by default. Pods trust them besides those of the image.",
    {
      allowed: "name/key",
      default: "",
      parse: (text): { readonly configMap: string; readonly key: string } | undefined => {
        if (text === "") return undefined;
        const [, configMap, key] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
        if (configMap === undefined || key === undefined) throw new Error("must be a name and a key");
        return { configMap, key };
      },
    },
  ),
  nodeSelector: optional.pairs("MILLWRIGHT_KUBERNETES_NODE_SELECTOR", "Node labels as `label=value`.", {
    default: "",
  }),
  tolerations: optional.custom(
    "MILLWRIGHT_KUBERNETES_TOLERATIONS",
    "Tolerations as `key=value:effect`, `key:effect` for any value, or `key` for any effect.",
    {
      allowed: "a comma-separated list of key=value:effect",
      default: "",
      parse: (text): readonly Toleration[] => partsOf(text).map(toleration),
    },
  ),
  labels: optional.pairs("MILLWRIGHT_KUBERNETES_LABELS", "Additional labels of Jobs and pods, as `key=value`.", {
    default: "",
  }),
  cpus: optional.int("MILLWRIGHT_KUBERNETES_CPUS", "Processors of a run whose runner specifies none.", {
    default: 1,
    min: 1,
  }),
  memoryBytes: optional.size("MILLWRIGHT_KUBERNETES_MEMORY", "Memory of a run whose runner specifies none.", {
    default: "4G",
  }),
  diskBytes: optional.size(
    "MILLWRIGHT_KUBERNETES_DISK",
    "The maximum size of a run's workspace, home and spool together, on the node.",
    { default: "20G" },
  ),
  user: optional.int("MILLWRIGHT_KUBERNETES_USER", "The user and group id that the worker runs as; never root.", {
    default: 10_001,
    min: 1,
  }),
  deadlineMs: optional.duration("MILLWRIGHT_KUBERNETES_DEADLINE", "The maximum lifetime of a pod.", {
    default: "9h",
  }),
  graceMs: optional.duration(
    "MILLWRIGHT_KUBERNETES_GRACE",
    "How long a pod may continue to run after it was asked to terminate.",
    { default: "60s" },
  ),
  ttlMs: optional.duration("MILLWRIGHT_KUBERNETES_TTL", "How long ended Jobs are retained for inspection.", {
    default: "1h",
  }),
  unschedulableMs: optional.duration(
    "MILLWRIGHT_KUBERNETES_UNSCHEDULABLE_TIMEOUT",
    "How long a pod may wait until it can be scheduled on a node.",
    { default: "5m" },
  ),
};

type Values = ValuesOf<typeof kubernetesVariables>;

/** Environment variables of this worker that are also set in its pods. */
const FORWARDED =
  /^(?:MILLWRIGHT_SANDBOX(?:_\w+)?|MILLWRIGHT_EGRESS_\w+|MILLWRIGHT_HARNESS_\w+|MILLWRIGHT_ALLOWED_INTERNAL_HOSTS|MILLWRIGHT_REPOSITORY_CACHE|LOG_LEVEL)$/;

export type Toleration = {
  readonly key: string;
  readonly operator: "Equal" | "Exists";
  readonly value?: string;
  readonly effect?: string;
};

export type KubernetesSettings = Omit<Values, "images"> & {
  readonly images: ReadonlyMap<string, string>;
  readonly forwarded: Readonly<Record<string, string>>;
};

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** Throws an Error if a setting is missing that the backend needs. */
export function checkKubernetes({ image }: Values): void {
  if (image === "") throw new Error("MILLWRIGHT_KUBERNETES_IMAGE is required by the kubernetes backend.");
}

/** Returns the settings of the backend. Throws one error that lists every problem. */
export const kubernetesSettings = (
  env: Env,
  values: Values = readConfig(env, kubernetesVariables, [{ variables: [], check: checkKubernetes }]),
): KubernetesSettings =>
  Object.freeze({
    ...values,
    images: new Map(Object.entries(values.images)),
    forwarded: Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) =>
        value !== undefined && FORWARDED.test(name) ? [[name, value]] : [],
      ),
    ),
  });

function toleration(text: string): Toleration {
  const [, key, value, effect] = /^([^=:]+)(?:=([^:]*))?(?::(\w+))?$/.exec(text) ?? [];
  if (key === undefined || (effect !== undefined && !EFFECTS.includes(effect)))
    throw new Error(`${text} is not key=value:effect`);
  return {
    key,
    operator: value === undefined ? "Exists" : "Equal",
    value,
    effect,
  };
}
