import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { spawn, type ChildProcess } from "node:child_process";
import type { Server } from "node:net";
import { join, resolve } from "node:path";
import { Worker } from "node:worker_threads";
import { EmbeddedPostgres, ensureDatabase } from "@millwright/database";
import { OWNER_KEY } from "@millwright/test-platform";
import { Client } from "pg";
import { CertificateAuthority } from "./certificates.ts";
import { SERVICES } from "./chart-settings.ts";
import { routesOf, serveRoutes } from "./ingress.ts";
import { LocalCluster, workloadsOf, type Release } from "./local-cluster.ts";
import type { OutsideHost } from "./pod-network.ts";
import type { RelayOptions } from "./relay-thread.ts";
import type { Manifest, ValueSet } from "./render.ts";

/** A program of the tests that serves a bucket. It has fixed credentials, and checks signatures and their expiry. */
const BUCKET_PROGRAM = resolve(import.meta.dirname, "../../libs/testing/src/s3rver-thread.mjs");
const RELAY_PROGRAM = resolve(import.meta.dirname, "relay-thread.ts");
const BUCKET_KEY = "S3RVER";

/** What differs from a value set: values for a local bucket, and the hosts outside of the cluster. */
const OUTSIDE: Readonly<Record<ValueSet, readonly OutsideHost[]>> = {
  small: [],
  "highly-available": [
    { component: "databases", hostname: "databases.example.com", address: "10.20.0.10", port: 5432 },
    { component: "nats-cluster", hostname: "nats.example.com", address: "10.21.0.10", port: 4222 },
    { component: "bucket", hostname: "bucket.example.com", address: "52.95.0.10", port: 443 },
    { component: "ingress", hostname: "millwright.example.com", address: "52.95.0.20", port: 443 },
    { component: "ingress-webhooks", hostname: "hooks.example.com", address: "52.95.0.21", port: 443 },
  ],
  "air-gapped": [
    { component: "databases", hostname: "databases.internal.example", address: "10.20.0.10", port: 5432 },
    { component: "bucket", hostname: "minio.internal.example", address: "10.22.0.10", port: 9000 },
    { component: "ingress", hostname: "millwright.internal.example", address: "10.22.0.20", port: 443 },
  ],
};

/** The models of the air-gapped set, whose server does not exist here: runs take the steps of their scripts instead. */
const ALIASES = ["auto", "openai-compatible/local-large"].map((model) => `${model}=scripted`).join("\\,");

/** Values for what exists here: a local bucket with its certificate's authority, and no model server. */
export const LOCAL_VALUES: Readonly<Record<ValueSet, readonly string[]>> = {
  small: ["--set", "defaults.replicas=2,workerDefaults.replicas=2"],
  "highly-available": [
    ...["--set", "blobs.url=s3://millwright?region=eu-central-1&endpoint=https://bucket.example.com"],
    ...["--set", "certificateAuthorities.configMap=authorities"],
  ],
  "air-gapped": [
    ...["--set", "defaults.replicas=2,workerDefaults.replicas=2"],
    ...["--set-string", `services.orchestrator.settings.MILLWRIGHT_MODEL_ALIASES=${ALIASES}`],
  ],
};

/** A started deployment of a value set. */
export type Installation = {
  readonly cluster: LocalCluster;
  readonly release: Release;
  /** The platform's URL for users. */
  readonly url: string;
  readonly ownerKey: string;
  /** The file with the authority of the public URL's certificate. */
  readonly authority: string;
  /** Objects of the release whose pods are not started, with the reason. */
  readonly skipped: readonly string[];
  /** Returns the URL of a service's database. */
  databaseUrl(service: string): string;
  /** Stops everything. Returns the pods that did not stop gracefully. */
  stop(): Promise<string[]>;
  remove(): Promise<void>;
};

/** Creates what an operator creates for a value set, and installs the release. */
export async function install(directory: string, values: ValueSet, release: Release): Promise<Installation> {
  const authority = new CertificateAuthority(join(directory, "authority"));
  const outside = OUTSIDE[values];
  const secrets = new Map<string, string>(keysOf(release, authority));
  const cluster = new LocalCluster({ directory, outside, secrets });
  cluster.apply(release);
  const servers: (Server | ChildProcess | Worker)[] = [];
  const [postgres, bucket] = await Promise.all([
    EmbeddedPostgres.start({ dataDir: join(directory, "postgres"), maxConnections: 300 }),
    startBucket(join(directory, "bucket")),
  ]);

  const database = workloadsOf(release).find(({ metadata }) => metadata.name.endsWith("-postgresql"));
  if (database) {
    secrets.set("millwright-postgresql/password", new URL(postgres.url("postgres")).password);
    servers.push(
      await relay({ address: cluster.create(database, release, true).address, port: 5432, to: postgres.port }),
    );
  }
  for (const host of outside) {
    if (host.component === "databases") {
      servers.push(await relay({ address: host.address, port: host.port, to: postgres.port }));
      await createDatabases(postgres, host.hostname, secrets);
    } else if (host.component === "nats-cluster") {
      const options = ["--addr", host.address, "--jetstream", "--store_dir", join(directory, "nats-cluster")];
      servers.push(spawn("nats-server", options, { stdio: "ignore" }));
      secrets.set("millwright-nats/url", `nats://${host.hostname}:${host.port}`);
    } else if (host.component === "bucket") {
      servers.push(
        await relay({
          address: host.address,
          port: host.port,
          to: bucket.port,
          certificate: authority.issue([host.hostname]),
        }),
      );
      for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
        secrets.set(`millwright-bucket/${name}`, BUCKET_KEY);
    } else {
      const certificate = authority.issue([host.hostname]);
      const address = (service: string): string => cluster.network.addressOf(service);
      servers.push(await serveRoutes(host.address, certificate, routesOf(release.manifests), address));
    }
  }

  const skipped: string[] = [];
  await cluster.install(release, (workload) => {
    if (workload === database) return false;
    const needsCluster = workload["spec"].template.spec.automountServiceAccountToken === true;
    if (needsCluster) skipped.push(`${workload.metadata.name} (it creates Jobs through the Kubernetes API)`);
    return !needsCluster;
  });
  const gateway = release.manifests.find(
    ({ kind, metadata }) => kind === "ConfigMap" && metadata.name.endsWith("-gateway"),
  )!;
  return {
    cluster,
    release,
    url: gateway["data"].MILLWRIGHT_PUBLIC_URL,
    ownerKey: OWNER_KEY,
    authority: authority.file,
    skipped,
    databaseUrl: (service) => postgres.url(`millwright_${service}`),
    stop: () => cluster.stop(),
    remove: () => remove(cluster, servers, postgres, bucket.thread),
  };
}

async function remove(
  cluster: LocalCluster,
  servers: readonly (Server | ChildProcess | Worker)[],
  postgres: EmbeddedPostgres,
  bucket: Worker,
): Promise<void> {
  cluster.killAll();
  for (const server of servers) {
    if (server instanceof Worker) await server.terminate();
    else if ("kill" in server) server.kill("SIGKILL");
    else server.close();
  }
  await postgres.stop();
  await bucket.terminate();
}

/** Returns the platform's keys, the certificates of its services, and the authority of the hosts outside. */
function* keysOf({ manifests }: Release, authority: CertificateAuthority): Generator<[string, string]> {
  const key = (): string => randomBytes(32).toString("base64");
  yield ["millwright-keys/master-key", key()];
  for (const service of SERVICES) yield [`millwright-keys/service-key-${service}`, key()];
  yield ["millwright-keys/bootstrap-api-key", OWNER_KEY];
  yield ["millwright-keys/worker-key", `mww_${randomBytes(32).toString("base64url")}`];
  yield ["millwright-models/OPENAI_COMPATIBLE_API_KEY", "sk-none"];
  for (const name of ["authorities", "internal-authorities"]) yield [`${name}/ca.crt`, authority.pem];
  const requested = manifests.filter(({ kind }) => kind === "Certificate").map(({ spec }) => spec);
  const certificates = requested.length > 0 ? requested : tlsSecretsOf(manifests);
  for (const { secretName, dnsNames } of certificates) {
    const { cert, key: secret } = authority.issue(dnsNames);
    yield [`${secretName}/tls.crt`, cert];
    yield [`${secretName}/tls.key`, secret];
    yield [`${secretName}/ca.crt`, authority.pem];
  }
}

/** Returns the Secrets with certificates that the operator creates for the services, with the names of the Services. */
const tlsSecretsOf = (manifests: readonly Manifest[]): { secretName: string; dnsNames: string[] }[] =>
  workloadsOf({ manifests } as Release).flatMap(({ metadata, spec }) =>
    ((spec.template.spec.volumes ?? []) as { name: string; secret?: { secretName: string } }[])
      .filter(({ name }) => name === "tls")
      .map(({ secret }) => ({ secretName: secret!.secretName, dnsNames: [metadata.name] })),
  );

/** Creates a database and a role per service; a role has no right on the other databases. */
async function createDatabases(postgres: EmbeddedPostgres, host: string, secrets: Map<string, string>): Promise<void> {
  for (const service of SERVICES) {
    const database = `millwright_${service}`;
    const password = randomBytes(16).toString("hex");
    await ensureDatabase(postgres.url("postgres"), database);
    const client = new Client({ connectionString: postgres.url(database) });
    await client.connect();
    await client.query(`CREATE ROLE "${database}" LOGIN PASSWORD '${password}'`);
    await client.query(`ALTER DATABASE "${database}" OWNER TO "${database}"`);
    await client.query(`REVOKE ALL ON DATABASE "${database}" FROM PUBLIC`);
    await client.end();
    secrets.set(`millwright-databases/${service}`, `postgres://${database}:${password}@${host}:5432/${database}`);
  }
}

async function startBucket(directory: string): Promise<{ readonly thread: Worker; readonly port: number }> {
  const thread = new Worker(BUCKET_PROGRAM, { workerData: { directory, bucket: "millwright" } });
  const [port] = (await once(thread, "message")) as [number];
  return { thread, port };
}

/** Passes connections on to a port of this machine; with a certificate, it ends their TLS. */
async function relay(options: RelayOptions): Promise<Worker> {
  const thread = new Worker(RELAY_PROGRAM, { workerData: options });
  await once(thread, "message");
  return thread;
}
