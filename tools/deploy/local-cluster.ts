import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chownSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { probeHealth } from "@millwright/rpc";
import type { ImageName } from "./image-files.ts";
import { PodNetwork, type Edge, type Host, type OutsideHost } from "./pod-network.ts";
import { RELEASE, type Manifest } from "./render.ts";

const USER = 10_001;
/** Files of Debian below /etc that programs need. Not all of /etc, because volumes are mounted there. */
const SYSTEM_FILES = ["alternatives", "group", "host.conf", "ld.so.cache", "nsswitch.conf", "passwd", "ssl"];
const START_TIMEOUT_MS = 180_000;
const POLL_MS = 200;
/** How long a cluster takes to remove a terminating pod from its Services. */
const ENDPOINTS_DELAY_MS = 1_000;

// oxlint-disable-next-line typescript/no-explicit-any -- objects of Kubernetes, whose types chart.test.ts checks
type Spec = any;

/** Rendered manifests, and the directories with the files of their images. */
export type Release = {
  readonly manifests: readonly Manifest[];
  readonly images: Readonly<Record<ImageName, string>>;
};

export type Pod = Host & {
  readonly name: string;
  /** The object that declares it, such as "Deployment/mw-millwright-gateway". */
  readonly workload: string;
  readonly release: Release;
  readonly spec: Spec;
  /** Undefined for a program that is started outside of this cluster, at the pod's address. */
  readonly network: string | undefined;
};

export type LocalClusterOptions = {
  /** A new directory for volumes, logs and names. */
  readonly directory: string;
  /** Hosts outside of the cluster. */
  readonly outside: readonly OutsideHost[];
  /** Values of the keys of Secrets and ConfigMaps that the operator creates, as "name/key". */
  readonly secrets: ReadonlyMap<string, string>;
};

/**
 * Runs what manifests declare as processes of this machine: commands, arguments, variables, users, mounts and probes, in a
 * read-only root file system with the files of the image, in a network as that of a cluster. Needs bubblewrap.
 */
export class LocalCluster {
  readonly network: PodNetwork;
  readonly #options: LocalClusterOptions;
  readonly #running = new Map<Pod, ChildProcess>();
  readonly #pods = new Set<Pod>();
  readonly #ready = new Set<Pod>();
  #release: Release | undefined;
  #created = 0;
  #pendingUpdate: NodeJS.Immediate | undefined;

  constructor(options: LocalClusterOptions) {
    this.#options = options;
    this.network = new PodNetwork(join(options.directory, "hosts"));
    for (const { address } of options.outside) this.network.addHost(address);
  }

  get pods(): readonly Pod[] {
    return [...this.#pods];
  }

  podsOf(component: string): Pod[] {
    return this.pods.filter((pod) => pod.component === component);
  }

  edges(): Edge[] {
    return this.network.edges();
  }

  /** Makes the Services and NetworkPolicies of a release those of the cluster. */
  apply(release: Release): void {
    this.#release = release;
    this.#update();
  }

  /** Starts all pods of the release: the databases, then the services at once, then the workers. */
  async install(release: Release, isStarted: (workload: Manifest) => boolean): Promise<void> {
    this.apply(release);
    const workloads = workloadsOf(release).filter(isStarted);
    const start = (group: readonly Manifest[]): Promise<unknown> =>
      Promise.all(
        group.flatMap((workload) =>
          Array.from({ length: replicasOf(workload, release) }, () => this.start(this.create(workload, release))),
        ),
      );
    await start(workloads.filter(({ kind }) => kind === "StatefulSet"));
    await start(workloads.filter((one) => one.kind === "Deployment" && !isWorker(one)));
    await start(workloads.filter((one) => one.kind === "Deployment" && isWorker(one)));
  }

  /** Creates a pod of a workload, which does not run yet. */
  create(workload: Manifest, release: Release, isOutside = false): Pod {
    const { metadata, spec } = workload["spec"].template;
    return this.#add(`${workload.kind}/${workload.metadata.name}`, {
      labels: metadata.labels,
      spec,
      release,
      isOutside,
    });
  }

  #add(
    workload: string,
    {
      labels,
      spec,
      release,
      isOutside = false,
    }: Pick<Pod, "spec" | "release"> & { labels: Pod["labels"]; isOutside?: boolean },
  ): Pod {
    const address = this.network.newAddress();
    if (isOutside) this.network.addHost(address);
    const pod: Pod = {
      name: `${workload.split("/")[1]}-${++this.#created}`,
      workload,
      component: labels!["app.kubernetes.io/component"]!,
      labels: labels!,
      namespace: RELEASE.namespace,
      address,
      ports: Object.fromEntries(
        ((spec.containers[0].ports ?? []) as { name: string; containerPort: number }[]).map((port) => [
          port.name,
          port.containerPort,
        ]),
      ),
      release,
      spec,
      network: isOutside ? undefined : this.network.addPod(address),
    };
    this.#pods.add(pod);
    if (isOutside) this.#ready.add(pod);
    this.#update();
    return pod;
  }

  /** Runs the init containers of a pod one after another, starts its container, and waits until the probes pass. */
  async start(pod: Pod): Promise<void> {
    for (const container of pod.spec.initContainers ?? []) {
      const [code] = (await once(this.#startContainer(pod, container), "exit")) as [number | null];
      if (code !== 0) throw new Error(`${pod.name}: ${container.name} failed:\n${this.output(pod)}`);
    }
    await this.restart(pod);
  }

  /** Starts the container of a pod, and waits until the probes pass. */
  async restart(pod: Pod): Promise<void> {
    const [container] = pod.spec.containers;
    const child = this.#startContainer(pod, container);
    this.#running.set(pod, child);
    for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"])
      if (container[probe]) await this.#untilReady(pod, child, container[probe]);
    this.#ready.add(pod);
    this.#update();
  }

  /** Kills the process of a pod. Resolves when the cluster has noticed it. */
  async kill(pod: Pod): Promise<void> {
    const child = this.#running.get(pod)!;
    const exited = once(child, "exit");
    process.kill(processOf(child), "SIGKILL");
    await exited;
    this.#ready.delete(pod);
    this.#update();
  }

  /**
   * Stops a pod as the kubelet does, and removes it. Returns its name and output unless it exits within its grace period,
   * a pod of Millwright's with code 0.
   */
  async terminate(pod: Pod): Promise<string | undefined> {
    const child = this.#running.get(pod)!;
    if (child.exitCode !== null || child.signalCode !== null) {
      this.#remove(pod);
      return `${pod.name} had ended before (${child.exitCode ?? child.signalCode}): ${this.output(pod)}`;
    }
    const exited = once(child, "exit") as Promise<[number | null]>;
    const endMs = performance.now() + pod.spec.terminationGracePeriodSeconds * 1_000;
    const forgetEndpoints = async (): Promise<void> => {
      await pause(ENDPOINTS_DELAY_MS);
      this.#ready.delete(pod);
      this.#update();
    };
    const endpoints = forgetEndpoints();
    // Pods of 0.1.0 have this hook.
    await pause((pod.spec.containers[0].lifecycle?.preStop?.sleep?.seconds ?? 0) * 1_000);
    const killer = setTimeout(() => child.kill("SIGKILL"), endMs - performance.now());
    process.kill(processOf(child), "SIGTERM");
    const [code] = await exited;
    clearTimeout(killer);
    await endpoints;
    this.#remove(pod);
    const isOrderly = code === 0 || (code !== null && pod.workload.startsWith("StatefulSet/"));
    return isOrderly ? undefined : `${pod.name} (${code}): ${this.output(pod)}`;
  }

  /**
   * Replaces every pod by one of the release, `atOnce` workloads at a time, as Deployments do with one more pod than
   * replicas and none fewer. Returns the pods that did not stop gracefully.
   */
  async rollOut(release: Release, atOnce: number, report: (workload: string) => void): Promise<string[]> {
    this.apply(release);
    const failedStops: string[] = [];
    const started = new Set([...this.#running.keys()].map(({ workload }) => workload));
    const queue = workloadsOf(release).filter(
      ({ kind, metadata }) => kind === "Deployment" && started.has(`${kind}/${metadata.name}`),
    );
    const next = async (): Promise<void> => {
      for (let workload = queue.shift(); workload; workload = queue.shift()) {
        const name = `${workload.kind}/${workload.metadata.name}`;
        const terminating: Promise<unknown>[] = [];
        for (const old of [...this.#running.keys()].filter((pod) => pod.workload === name)) {
          await this.start(this.create(workload, release));
          terminating.push(this.terminate(old).then((fault) => fault !== undefined && failedStops.push(fault)));
        }
        await Promise.all(terminating);
        report(workload.metadata.name);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, next));
    return failedStops;
  }

  /** Runs the pod of `helm test` and returns its output. Throws if it fails. */
  async test(): Promise<string> {
    const manifest = this.#release!.manifests.find(({ kind }) => kind === "Pod")!;
    const spec = { ...manifest["spec"], terminationGracePeriodSeconds: 30 };
    const { labels } = manifest.metadata;
    const pod = this.#add(`Pod/${manifest.metadata.name}`, { labels: labels!, spec, release: this.#release! });
    const [code] = (await once(this.#startContainer(pod, spec.containers[0]), "exit")) as [number | null];
    this.#remove(pod);
    if (code !== 0) throw new Error(`helm test failed:\n${this.output(pod)}`);
    return this.output(pod);
  }

  /** Runs a command in the container of a pod, as `kubectl exec` does. Returns its exit code; the pod's output has its own. */
  async execute(pod: Pod, command: readonly string[]): Promise<number | null> {
    const container = { ...pod.spec.containers[0], command, args: [] };
    const [code] = (await once(this.#startContainer(pod, container), "exit")) as [number | null];
    return code;
  }

  /** Stops the workers, then the services. Returns the pods that did not stop gracefully. */
  async stop(): Promise<string[]> {
    const faults: (string | undefined)[] = [];
    const groups = [isWorkerPod, (pod: Pod) => !isWorkerPod(pod) && pod.workload.startsWith("Deployment/"), () => true];
    for (const group of groups)
      faults.push(...(await Promise.all([...this.#running.keys()].filter(group).map((pod) => this.terminate(pod)))));
    return faults.filter((fault) => fault !== undefined);
  }

  killAll(): void {
    for (const child of this.#running.values()) child.kill("SIGKILL");
  }

  output(pod: Pod): string {
    return existsSync(this.#logOf(pod)) ? readFileSync(this.#logOf(pod), "utf8").slice(-3_000) : "";
  }

  #logOf(pod: Pod): string {
    return join(this.#options.directory, `${pod.name}.log`);
  }

  #remove(pod: Pod): void {
    this.#running.delete(pod);
    this.#pods.delete(pod);
    this.#ready.delete(pod);
    this.network.removePod(pod.address);
    this.#update();
  }

  /** Updates the network after the changes of this turn of the event loop, because an update blocks this thread. */
  #update(): void {
    if (this.#pendingUpdate) return;
    this.#pendingUpdate = setImmediate(() => {
      this.#pendingUpdate = undefined;
      const { outside } = this.#options;
      this.network.update({ manifests: this.#release!.manifests, pods: this.pods, ready: [...this.#ready], outside });
    });
  }

  /** Starts a container as its image's user with the files of its image, its variables and its mounts only. */
  #startContainer(pod: Pod, container: Spec): ChildProcess {
    const isNats = container.command?.[0] === "nats-server";
    const command: string[] = container.command ?? ["node", "/opt/millwright/apps/worker/dist/main.js"];
    const bind = (from: string, to: string): string[] => ["--ro-bind", from, to];
    const image = container.image.includes("millwright-worker") ? "worker" : "services";
    const ours = [...bind(pod.release.images[image], "/opt/millwright"), ...bind(process.execPath, "/opt/bin/node")];
    const volumes = ((container.volumeMounts ?? []) as { name: string; mountPath: string }[]).flatMap((mount) => [
      ...["--bind", this.#volume(pod, mount.name), mount.mountPath],
    ]);
    const isolation = [
      ...[...bind("/usr", "/usr"), "--proc", "/proc", "--dev", "/dev", "--unshare-pid"],
      ...["bin", "sbin", "lib", "lib64"].flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]),
      ...SYSTEM_FILES.flatMap((name) => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
      ...[...bind(this.network.hostsFile, "/etc/hosts"), ...(isNats ? [] : ours), ...volumes, "--remount-ro", "/"],
      ...["--chdir", isNats ? "/" : "/opt/millwright", "--die-with-parent", "--clearenv"],
    ];
    const path = "/opt/bin:/usr/bin:/bin:/usr/sbin";
    const environment = Object.entries({ PATH: path, NODE_ENV: "production", ...this.#variables(pod, container) });
    const log = openSync(this.#logOf(pod), "a");
    const child = spawn(
      "nsenter",
      [
        `--net=${pod.network}`,
        ...["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups", "bwrap", ...isolation],
        ...environment.flatMap(([name, value]) => ["--setenv", name, value]),
        ...["--", ...command, ...(container.args ?? [])],
      ],
      { stdio: ["ignore", log, log] },
    );
    closeSync(log);
    return child;
  }

  /** Returns the directory of a volume. An emptyDir is the pod's own; a claim is shared by all pods that name it. */
  #volume(pod: Pod, name: string): string {
    const volume = (pod.spec.volumes as Spec[]).find((one) => one.name === name) ?? {};
    const { persistentVolumeClaim: claim, secret, configMap } = volume;
    const path = join(this.#options.directory, "volumes", claim?.claimName ?? join(pod.name, name));
    mkdirSync(path, { recursive: true });
    chownSync(path, USER, USER);
    const source = secret?.secretName ?? configMap?.name;
    if (source === undefined) return path;
    const files = [...this.#options.secrets].filter(([key]) => key.startsWith(`${source}/`));
    if (files.length === 0) throw new Error(`${pod.name} mounts ${source}, which the operator did not create.`);
    for (const [key, value] of files) {
      const file = join(path, key.slice(source.length + 1));
      writeFileSync(file, value, { mode: 0o440 });
      chownSync(file, USER, USER);
    }
    return path;
  }

  /** Returns the variables of a container, as the kubelet makes them of ConfigMaps, Secrets and `$(NAME)`. */
  #variables(pod: Pod, container: Spec): Record<string, string> {
    const variables: Record<string, string> = {};
    for (const { configMapRef } of container.envFrom ?? [])
      Object.assign(
        variables,
        pod.release.manifests.find(
          ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === configMapRef.name,
        )!["data"],
      );
    for (const { name, value, valueFrom } of container.env ?? []) {
      const { name: secret, key, optional = false } = valueFrom?.secretKeyRef ?? {};
      const found = valueFrom
        ? this.#options.secrets.get(`${secret}/${key}`)
        : String(value).replaceAll(/\$\((\w+)\)/g, (_text, referenced: string) => variables[referenced]!);
      if (found !== undefined) variables[name] = found;
      else if (!optional) throw new Error(`${pod.name} needs the Secret ${secret} with the key ${key}.`);
    }
    return variables;
  }

  /** Waits until a probe succeeds. Throws with the output if the process exits or the time is up. */
  async #untilReady(pod: Pod, child: ChildProcess, probe: Spec): Promise<void> {
    const deadline = performance.now() + START_TIMEOUT_MS;
    while (!(await passes(pod, probe))) {
      if (child.exitCode !== null || performance.now() > deadline)
        throw new Error(`${pod.name} is not ready (exit code ${child.exitCode}):\n${this.output(pod)}`);
      await pause(POLL_MS);
    }
  }
}

/** Returns the objects of a release that declare pods which run on. */
export const workloadsOf = ({ manifests }: Release): Manifest[] =>
  manifests.filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet");

const WORKER = "worker";
export const isWorker = (workload: Manifest): boolean =>
  workload["spec"].template.metadata.labels["millwright/role"] === WORKER;
const isWorkerPod = ({ labels }: Pod): boolean => labels!["millwright/role"] === WORKER;

/** Returns the replicas of a workload; those of an autoscaled one are its minimum. */
function replicasOf({ kind, metadata, spec }: Manifest, { manifests }: Release): number {
  const autoscaler = manifests.find(
    (one) =>
      one.kind === "HorizontalPodAutoscaler" &&
      one["spec"].scaleTargetRef.kind === kind &&
      one["spec"].scaleTargetRef.name === metadata.name,
  );
  return autoscaler ? autoscaler["spec"].minReplicas : spec.replicas;
}

/** Returns the process that bubblewrap runs, not bubblewrap, whose end would kill it. */
function processOf({ pid }: ChildProcess): number {
  const childOf = (parent: string): string => execFileSync("pgrep", ["--parent", parent], { encoding: "utf8" }).trim();
  return Number(childOf(childOf(String(pid))));
}

async function passes({ address, ports }: Pod, { httpGet, grpc }: Spec): Promise<boolean> {
  if (grpc) return (await probeHealth(`http://${address}:${grpc.port}`)) === undefined;
  const url = `http://${address}:${ports![httpGet.port] ?? httpGet.port}${httpGet.path}`;
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}
