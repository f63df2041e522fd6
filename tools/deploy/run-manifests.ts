/**
 * Starts what the chart's manifests declare as processes of this machine, and runs a job on it: the same commands, arguments,
 * variables, users, mounts and probes, in a read-only root file system with the files of the image. Needs root, bubblewrap
 * and nats-server.
 *
 *   npm run test:deploy
 *
 * A pod has a loopback address of its own, and a hosts file has the names of the Services. Not as in a cluster: the listen
 * address 0.0.0.0 is replaced by the pod's, because the pods share one network, NetworkPolicies are not enforced, and
 * PostgreSQL is the embedded one.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chownSync,
  createWriteStream,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EmbeddedPostgres } from "@millwright/database";
import { probeHealth } from "@millwright/rpc";
import { IMAGES, writeImageFiles, type ImageName } from "./image-files.ts";
import { render, type Manifest } from "./render.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const USER = 10_001;
const START_TIMEOUT_MS = 180_000;
const JOB_TIMEOUT_MS = 120_000;
const POLL_MS = 200;

/** A prompt whose steps a run executes without a model. */
const PROMPT = [
  "````scripted",
  "- write: {path: hello.txt, content: hello}",
  "- shell: cat hello.txt",
  "- artifact: {file: hello.txt, title: Hello}",
  "- finish: Done.",
  "````",
].join("\n");

type Pod = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- validated by chart.test.ts
  readonly spec: any;
};

const directory = mkdtempSync(join(tmpdir(), "millwright-deploy-"));
const children: { readonly pod: Pod; readonly child: ChildProcess }[] = [];
const servers: Server[] = [];
let postgres: EmbeddedPostgres | undefined;

async function main(): Promise<void> {
  const began = performance.now();
  const report = (text: string): void =>
    void process.stdout.write(`${((performance.now() - began) / 1_000).toFixed(1).padStart(6)} s  ${text}\n`);
  execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["-b", ...globSync("apps/*/tsconfig.json", { cwd: ROOT })], {
    cwd: ROOT,
    stdio: "inherit",
  });
  for (const image of Object.keys(IMAGES) as ImageName[]) writeImageFiles(image, join(directory, "images", image));
  execFileSync("chmod", ["-R", "a+rX", directory]);
  report("the images' files are written");

  const manifests = await render(4, "small", "--set", "defaults.replicas=2");
  const pods = podsOf(manifests);
  const secrets = new Map<string, string>();
  await startDatabases(pods, secrets);
  writeHosts(manifests, pods);
  await openServices(manifests, pods);
  report("PostgreSQL and NATS have started");

  const own = pods.filter(({ spec }) => /millwright-(?:services|worker):/.test(spec.containers[0].image));
  const services = own.filter(({ labels }) => labels["millwright/role"] !== "worker");
  const workers = own.filter(({ labels }) => labels["millwright/role"] === "worker");
  await Promise.all(services.map((pod) => startPod(pod, manifests, secrets)));
  report(`${services.length} pods of services are migrated, started and ready`);
  for (const pod of workers) await startPod(pod, manifests, secrets);

  const test = manifests.find(({ kind }) => kind === "Pod")!;
  const testPod: Pod = {
    name: test.metadata.name,
    labels: test.metadata.labels ?? {},
    address: "127.1.0.1",
    spec: test["spec"],
  };
  const [code] = (await once(startContainer(testPod, test["spec"].containers[0], manifests, secrets), "exit")) as [
    number,
  ];
  if (code !== 0) throw new Error(`helm test failed:\n${output(testPod)}`);
  report("helm test passes");

  await runJob(addressOf("mw-millwright-gateway-http"), secrets.get("millwright-keys/bootstrap-api-key")!);
  report("a run has succeeded");

  for (const group of [workers, services]) {
    const stopped = await Promise.all(group.map(stopPod));
    const unclean = stopped.filter((name) => name !== undefined);
    if (unclean.length > 0) throw new Error(`did not exit with code 0 in time: ${unclean.join(", ")}`);
  }
  report("all pods have stopped within their grace period");
}

/** Returns the pods of Deployments and StatefulSets, each replica with an address. */
function podsOf(manifests: readonly Manifest[]): Pod[] {
  return manifests
    .filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet")
    .flatMap(({ metadata, spec }, index) =>
      Array.from({ length: spec.replicas as number }, (_one, replica) => ({
        name: `${metadata.name}-${replica}`,
        labels: spec.template.metadata.labels,
        address: `127.1.${index + 1}.${replica + 1}`,
        spec: spec.template.spec,
      })),
    );
}

const selects = (service: Manifest, { labels }: Pod): boolean =>
  Object.entries(service["spec"].selector as Record<string, string>).every(([name, value]) => labels[name] === value);

const servicesOf = (manifests: readonly Manifest[]): Manifest[] => manifests.filter(({ kind }) => kind === "Service");
const isHeadless = ({ spec }: Manifest): boolean => spec.clusterIP === "None";
const hosts = new Map<string, string[]>();

/** Writes the names of headless Services with the addresses of their pods, of others with an address of their own. */
function writeHosts(manifests: readonly Manifest[], pods: readonly Pod[]): void {
  for (const [index, service] of servicesOf(manifests).entries()) {
    const addresses = pods.filter((pod) => selects(service, pod)).map(({ address }) => address);
    hosts.set(service.metadata.name, isHeadless(service) ? addresses : [`127.2.${index + 1}.1`]);
  }
  const lines = [...hosts].flatMap(([name, addresses]) => addresses.map((address) => `${address} ${name}`));
  writeFileSync(join(directory, "hosts"), ["127.0.0.1 localhost", ...lines, ""].join("\n"));
}

const addressOf = (service: string): string => hosts.get(service)![0]!;

/** Forwards the ports of Services with an address of their own to their pods in turn. */
async function openServices(manifests: readonly Manifest[], pods: readonly Pod[]): Promise<void> {
  for (const service of servicesOf(manifests).filter((one) => !isHeadless(one)))
    for (const { port, targetPort } of service["spec"].ports as { port: number; targetPort: string }[]) {
      const targets = pods
        .filter((pod) => selects(service, pod))
        .map((pod) => ({ host: pod.address, port: portOf(pod.spec.containers[0], targetPort) }));
      await forward(addressOf(service.metadata.name), port, targets);
    }
}

type Target = { readonly host: string; readonly port: number };

async function forward(host: string, port: number, targets: readonly Target[]): Promise<void> {
  let turn = 0;
  const server = createServer((client) => {
    const target = connect(targets[turn++ % targets.length]!);
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const)
      one.on("error", () => other.destroy());
    client.pipe(target).pipe(client);
  });
  servers.push(server);
  server.listen(port, host);
  await once(server, "listening");
}

const portOf = (container: Pod["spec"], port: string | number): number =>
  typeof port === "number"
    ? port
    : (container.ports as { name: string; containerPort: number }[]).find(({ name }) => name === port)!.containerPort;

/** Starts PostgreSQL and NATS at the addresses of their pods. */
async function startDatabases(pods: readonly Pod[], secrets: Map<string, string>): Promise<void> {
  const podOf = (component: string): Pod =>
    pods.find(({ labels }) => labels["app.kubernetes.io/component"] === component)!;
  postgres = await EmbeddedPostgres.start({ dataDir: join(directory, "postgres"), maxConnections: 300 });
  const { username, password } = new URL(postgres.url("postgres"));
  if (username !== "millwright") throw new Error(`The embedded PostgreSQL has the user ${username}.`);
  secrets.set("millwright-postgresql/password", password);
  await forward(podOf("postgresql").address, 5432, [{ host: "127.0.0.1", port: postgres.port }]);
  const nats = podOf("nats");
  const [{ command, args }] = nats.spec.containers;
  const data = join(directory, "nats");
  const options = (args as string[]).map((argument) => (argument === "/data" ? data : argument));
  const child = spawn(command[0], [...options, "--addr", nats.address], { stdio: "ignore" });
  children.push({ pod: nats, child });
  await untilReady(nats, child, nats.spec.containers[0].readinessProbe);
}

/** Runs the init containers of a pod one after another, starts its container, and waits for its probes. */
async function startPod(pod: Pod, manifests: readonly Manifest[], secrets: Map<string, string>): Promise<void> {
  for (const container of pod.spec.initContainers ?? []) {
    const [code] = (await once(startContainer(pod, container, manifests, secrets), "exit")) as [number];
    if (code !== 0) throw new Error(`${pod.name}: ${container.name} failed:\n${output(pod)}`);
  }
  const [container] = pod.spec.containers;
  const child = startContainer(pod, container, manifests, secrets);
  children.push({ pod, child });
  for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"])
    if (container[probe]) await untilReady(pod, child, container[probe]);
}

/** Starts a container as its image's user with the files of its image, its variables and its mounts only. */
function startContainer(
  pod: Pod,
  container: Pod["spec"],
  manifests: readonly Manifest[],
  secrets: Map<string, string>,
): ChildProcess {
  const image: ImageName = container.image.includes("millwright-worker") ? "worker" : "services";
  const command: string[] = container.command ?? ["node", "/opt/millwright/apps/worker/dist/main.js"];
  const mounts = (container.volumeMounts ?? []).flatMap(({ name, mountPath }: { name: string; mountPath: string }) => {
    const volume = pod.spec.volumes.find((one: { name: string }) => one.name === name);
    // An emptyDir is the pod's own; a claim is shared by all pods that name it.
    const path = join(directory, "volumes", volume.persistentVolumeClaim?.claimName ?? join(pod.name, name));
    mkdirSync(path, { recursive: true });
    chownSync(path, USER, USER);
    return ["--bind", path, mountPath];
  });
  const isolation = [
    ...["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev", "--unshare-pid"],
    ...["bin", "sbin", "lib", "lib64"].flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]),
    ...["--ro-bind", join(directory, "hosts"), "/etc/hosts"],
    ...[
      "--ro-bind",
      join(directory, "images", image),
      "/opt/millwright",
      "--ro-bind",
      process.execPath,
      "/opt/bin/node",
    ],
    ...[...mounts, "--remount-ro", "/", "--chdir", "/opt/millwright", "--die-with-parent", "--clearenv"],
  ];
  const variables = variablesOf(pod, container, manifests, secrets);
  const environment = Object.entries({ PATH: "/opt/bin:/usr/bin:/bin", NODE_ENV: "production", ...variables });
  const child = spawn(
    "setpriv",
    [
      ...[`--reuid=${USER}`, `--regid=${USER}`, "--clear-groups", "bwrap", ...isolation],
      ...environment.flatMap(([name, value]) => ["--setenv", name, value]),
      ...["--", ...command, ...(container.args ?? [])],
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  const log = createWriteStream(logOf(pod), { flags: "a" });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  return child;
}

const logOf = (pod: Pod): string => join(directory, `${pod.name}.log`);
const output = (pod: Pod): string => readFileSync(logOf(pod), "utf8").slice(-2_000);

/** Returns the variables of a container, as the kubelet makes them of ConfigMaps, Secrets and `$(NAME)`. */
function variablesOf(
  pod: Pod,
  container: Pod["spec"],
  manifests: readonly Manifest[],
  secrets: Map<string, string>,
): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const { configMapRef } of container.envFrom ?? [])
    Object.assign(
      variables,
      manifests.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === configMapRef.name)!["data"],
    );
  for (const { name, value, valueFrom } of container.env ?? [])
    variables[name] = valueFrom
      ? secretOf(`${valueFrom.secretKeyRef.name}/${valueFrom.secretKeyRef.key}`, secrets)
      : String(value).replaceAll(/\$\((\w+)\)/g, (_text, referenced: string) => variables[referenced]!);
  if (variables["HOST"] === "0.0.0.0") variables["HOST"] = pod.address;
  return variables;
}

/** Returns the value of a Secret's key, which is made on first use. */
function secretOf(key: string, secrets: Map<string, string>): string {
  if (!secrets.has(key)) {
    const prefix = key.endsWith("/worker-key") ? "mww_" : key.endsWith("/bootstrap-api-key") ? "mw_" : "";
    secrets.set(key, prefix + randomBytes(32).toString(prefix === "" ? "base64" : "base64url"));
  }
  return secrets.get(key)!;
}

/** Waits until a probe succeeds. Throws with the output if the process exits or the time is up. */
async function untilReady(pod: Pod, child: ChildProcess, probe: Pod["spec"]): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await passes(pod, probe))) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`${pod.name} is not ready (exit code ${child.exitCode}):\n${output(pod)}`);
    await pause(POLL_MS);
  }
}

async function passes(pod: Pod, { httpGet, grpc }: Pod["spec"]): Promise<boolean> {
  if (grpc) return (await probeHealth(`http://${pod.address}:${grpc.port}`)) === undefined;
  const url = `http://${pod.address}:${portOf(pod.spec.containers[0], httpGet.port)}${httpGet.path}`;
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Starts a run through the public API, and waits until it has succeeded with its file. */
async function runJob(host: string, key: string): Promise<void> {
  const call = async (method: string, path: string, body?: object): Promise<Record<string, any>> => {
    const response = await fetch(`http://${host}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, any>;
  };
  const { run_id: uid } = await call("POST", "/agent/runs", { prompt: PROMPT });
  const deadline = performance.now() + JOB_TIMEOUT_MS;
  for (;;) {
    const run = await call("GET", `/agent/runs/${uid}`);
    if (run["state"] === "SUCCEEDED" && run["artifacts"].length === 1) return;
    if (["FAILED", "ERROR", "BLOCKED", "CANCELLED"].includes(run["state"]) || performance.now() > deadline) {
      const logs = children.filter(({ pod }) => /worker/.test(pod.name)).map(({ pod }) => output(pod));
      throw new Error(`The run is ${run["state"]}: ${JSON.stringify(run["status_message"])}\n${logs.join("\n")}`);
    }
    await pause(POLL_MS);
  }
}

/** Stops a pod as the kubelet does. Returns its name unless it exits with code 0 within its grace period. */
async function stopPod(pod: Pod): Promise<string | undefined> {
  const { child } = children.find((one) => one.pod === pod)!;
  const ended = once(child, "exit") as Promise<[number | null]>;
  // The process, not bubblewrap, which would kill it.
  const pid = execFileSync(
    "pgrep",
    ["--parent", execFileSync("pgrep", ["--parent", String(child.pid)], { encoding: "utf8" }).trim()],
    {
      encoding: "utf8",
    },
  ).trim();
  process.kill(Number(pid), "SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), pod.spec.terminationGracePeriodSeconds * 1_000);
  const [code] = await ended;
  clearTimeout(late);
  return code === 0 ? undefined : `${pod.name} (${code}): ${output(pod)}`;
}

// At the end, because the functions above use constants between them.
try {
  await main();
} finally {
  for (const { child } of children) child.kill("SIGKILL");
  for (const server of servers) server.close();
  await postgres?.stop();
  rmSync(directory, { recursive: true, force: true });
}
