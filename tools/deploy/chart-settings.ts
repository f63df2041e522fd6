import type { SettingDescription } from "@millwright/config";
import { VARIABLES } from "../docs/configuration.ts";

export const SERVICES = [
  "gateway",
  "orchestrator",
  "factories",
  "scheduler",
  "scoring",
  "metrics",
  "webhook-ingress",
] as const;
export type ServiceName = (typeof SERVICES)[number];

/** An environment variable that values may set. */
export type Setting = Pick<SettingDescription, "name" | "isSecret">;

/** Variables that the templates set from other values. */
const SET_BY_TEMPLATES: readonly RegExp[] = [
  /^(?:DATABASE|NATS|MILLWRIGHT_PUBLIC|MILLWRIGHT_WEBHOOK|MILLWRIGHT_BLOB)_URL$/,
  /^(?:GATEWAY|ORCHESTRATOR|FACTORIES|SCHEDULER|SCORING|METRICS|WEBHOOK_INGRESS)_(?:JWKS_)?URL$/,
  /^(?:HOST|PORT|GRPC_PORT|OPS_PORT|BLOB_DIR|TLS_(?:CERT|KEY|CA)_FILE|MASTER_KEY|MASTER_KEY_SECONDARY|SERVICE_KEY)$/,
  /^AWS_(?:REGION|ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)$/,
  /^(?:ANTHROPIC|OPENAI|GOOGLE|OPENAI_COMPATIBLE)_API_KEY$/,
  /^MILLWRIGHT_(?:BOOTSTRAP_API_KEY|WORKER_KEY|GIT_CA_FILE)$/,
  /^MILLWRIGHT_(?:URL|WORKER_DIR|BACKEND|DRAIN_SECONDS)$/,
  /^MILLWRIGHT_KUBERNETES_(?:IMAGE|IMAGE_PULL_POLICY|IMAGE_PULL_SECRETS|SERVICE_ACCOUNT|CA_CONFIG_MAP)$/,
];

/** Variables without a use in a cluster, with the reason. */
export const WITHOUT_USE: Readonly<Record<string, string>> = {
  MASTER_KEY_FILE:
    "The key is in a Secret; files of Secrets are readable by the pod's group, which the services refuse.",
  MASTER_KEY_SECONDARY_FILE: "As MASTER_KEY_FILE.",
  SERVICE_KEY_FILE: "As MASTER_KEY_FILE.",
  MILLWRIGHT_WORKER_OFFER: "Set by a worker for the Jobs that it creates.",
  MILLWRIGHT_WORKER_OFFER_FILE: "Set by a worker for the Jobs that it creates.",
  MILLWRIGHT_WORKER_SUPERVISED: "Set by the standalone platform for its own workers.",
  MILLWRIGHT_WORKER_USER: "For a worker that starts as root.",
  MILLWRIGHT_KUBERNETES_KUBECONFIG: "The pod has a service account.",
};

export const isSetByTemplates = (name: string): boolean => SET_BY_TEMPLATES.some((pattern) => pattern.test(name));

const settable = (app: string): Setting[] =>
  variablesOf(app).filter(({ name }) => !isSetByTemplates(name) && !(name in WITHOUT_USE));

/** Returns the environment variables of an app, of a service or of `worker`. */
export function variablesOf(app: string): readonly SettingDescription[] {
  const variables = VARIABLES[app];
  if (!variables) throw new Error(`The app ${app} declares no configuration.`);
  return variables;
}

/** Returns the variables of each service that values may set. */
export const settingsOfServices = (): Readonly<Record<ServiceName, readonly Setting[]>> =>
  Object.fromEntries(SERVICES.map((name) => [name, settable(name)])) as Record<ServiceName, Setting[]>;

/** Returns the variables of workers that values may set. */
export const settingsOfWorkers = (): readonly Setting[] => settable("worker");
