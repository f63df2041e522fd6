import { optional, required, type Rule, type Setting, type ValuesOf } from "@millwright/config";
import { logLevel, tracingSettings } from "@millwright/telemetry";
import { readMasterKey, readSecondaryMasterKey, readServiceKey, readTls } from "./secrets.ts";

/** The range of a port's number; 0 selects a free port. */
export const PORT = { max: 65_535 };

/** For failure tests. */
export const timeScale = optional.int(
  "MILLWRIGHT_TIME_SCALE",
  "Divides every lease, offer, heartbeat and wait, for failure tests. Must be equal on all replicas.",
  { default: 1, min: 1, max: 10_000 },
);

export const eventRetentionDays = optional.int(
  "MILLWRIGHT_EVENT_RETENTION_DAYS",
  "Days for which a service's log retains its events for other services and NATS. A consumer that was off for longer [stops](retention.md#the-event-log).",
  { default: 90, min: 7, max: 36_500 },
);

/** Settings of every service; its own `config.ts` adds the rest. */
export const serviceSettings = {
  databaseUrl: required.url(
    "DATABASE_URL",
    "This service's own PostgreSQL database; its role has no access to others. Migrated at the start.",
    { secret: true },
  ),
  databasePool: optional.int("DATABASE_POOL", "Maximum number of connections to it.", {
    default: 10,
    min: 1,
    max: 10_000,
  }),
  natsUrl: optional.url(
    "NATS_URL",
    "NATS with JetStream: the public [lifecycle events](../events.md), and immediate notifications between services and replicas. Absent: services poll every 2 s.",
    { secret: true },
  ),
  host: optional.string("HOST", "Listen address of all ports.", { default: "127.0.0.1" }),
  grpcPort: optional.int("GRPC_PORT", "RPC over HTTP/2: Connect and gRPC.", { ...PORT, default: 9090 }),
  opsPort: optional.int("OPS_PORT", "HTTP/1.1: `/healthz`, `/readyz`, `/metrics`, `/jwks.json`.", {
    ...PORT,
    default: 9091,
  }),
  drainSeconds: optional.int(
    "MILLWRIGHT_DRAIN_SECONDS",
    "Seconds after SIGTERM in which a service still serves, while it is unready and load balancers and DNS forget it. Responses of public ports close their connections.",
    { default: 0, min: 0, max: 3_600 },
  ),
  publicUrl: required.url("MILLWRIGHT_PUBLIC_URL", "Origin of links and signed URLs: where users reach the gateways."),
  masterKey: optional.secret(
    "MASTER_KEY",
    "The platform's master key, the same for all services: 32 random bytes in base64 (`openssl rand -base64 32`), for secrets at rest, page tokens, signed URLs and run tokens. Either this or the file.",
  ),
  masterKeyFile: optional.string("MASTER_KEY_FILE", "A file with the master key, mode 0600."),
  secondaryMasterKey: optional.secret(
    "MASTER_KEY_SECONDARY",
    "During a [rotation of the master key](secure.md#rotate-the-master-key): the next or previous master key, with which secrets are decrypted and tokens verified, too.",
  ),
  secondaryMasterKeyFile: optional.string("MASTER_KEY_SECONDARY_FILE", "A file with that key, mode 0600."),
  serviceKey: optional.secret(
    "SERVICE_KEY",
    "This service's own secret, the same for its replicas, from which its [signing key](../decisions/0002-services-publish-their-keys.md) is derived: 32 random bytes in base64. Either this or the file.",
  ),
  serviceKeyFile: optional.string("SERVICE_KEY_FILE", "A file with the secret, mode 0600."),
  tlsCertFile: optional.string("TLS_CERT_FILE", "The certificate chain of the RPC port, as PEM. Absent: without TLS."),
  tlsKeyFile: optional.string("TLS_KEY_FILE", "The private key of that certificate, as PEM."),
  tlsCaFile: optional.string(
    "TLS_CA_FILE",
    "CA certificates (PEM) for upstream services with `https:` addresses. Absent: those of the system.",
  ),
  eventRetentionDays,
  logLevel,
  tracing: tracingSettings,
};

export type ServiceSettings = ValuesOf<typeof serviceSettings>;

/** Conditions on the settings of every service. */
export const serviceRules: readonly Rule<ServiceSettings>[] = [
  {
    variables: ["MASTER_KEY", "MASTER_KEY_FILE"],
    check: (values) => void readMasterKey(values),
  },
  {
    variables: ["MASTER_KEY_SECONDARY", "MASTER_KEY_SECONDARY_FILE"],
    check: (values) => void readSecondaryMasterKey(values),
  },
  {
    variables: ["SERVICE_KEY", "SERVICE_KEY_FILE"],
    check: (values) => void readServiceKey(values),
  },
  {
    variables: ["TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"],
    check: (values) => void readTls(values),
  },
];

/** The services by the key of their settings, with the prefix of their variables and their name in sentences. */
const UPSTREAMS = {
  gateway: ["GATEWAY", "the gateway (identity)"],
  orchestrator: ["ORCHESTRATOR", "the orchestrator"],
  factories: ["FACTORIES", "factories"],
  scheduler: ["SCHEDULER", "the scheduler"],
  scoring: ["SCORING", "scoring"],
  metrics: ["METRICS", "metrics"],
  webhookIngress: ["WEBHOOK_INGRESS", "the webhook ingress"],
} as const;

type Service = keyof typeof UPSTREAMS;
type AddressSettings<K extends string> = { readonly [Key in K]: Setting<string[]> };

/** Returns the settings of the services that this service calls: `gatewayUrls`, `gatewayJwksUrls`, …. */
export const upstreamSettings = <N extends Service>(
  ...names: readonly N[]
): AddressSettings<`${N}Urls` | `${N}JwksUrls`> => ({
  ...(Object.fromEntries(
    names.map((name) => {
      const [prefix, title] = UPSTREAMS[name];
      const description = `RPC addresses of ${title}. A host name may resolve to several addresses.`;
      return [`${name}Urls`, required.urls(`${prefix}_URL`, description)];
    }),
  ) as AddressSettings<`${N}Urls`>),
  ...callerSettings(...names),
});

/** Returns the settings of the services that call this service, which does not call them: `metricsJwksUrls`, …. */
export const callerSettings = <N extends Service>(...names: readonly N[]): AddressSettings<`${N}JwksUrls`> =>
  Object.fromEntries(
    names.map((name) => {
      const [prefix, title] = UPSTREAMS[name];
      const description = `\`http://…/jwks.json\` on the operations ports of ${title}.`;
      return [`${name}JwksUrls`, required.urls(`${prefix}_JWKS_URL`, description)];
    }),
  ) as AddressSettings<`${N}JwksUrls`>;
