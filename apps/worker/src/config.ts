import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { addressSet } from "@millwright/addresses";
import { optional, readConfig, required, type Env } from "@millwright/config";
import { allowedInternalHosts } from "@millwright/outbound";
import { loadTracingSettings, type TracingSettings } from "@millwright/telemetry";
import { kubernetesSettings, type KubernetesSettings } from "./backends/kubernetes/settings.ts";
import { hostPatterns } from "./egress/host-patterns.ts";
import { leaseOfOffer } from "./protocol/offer.ts";
import { readCheckout } from "./protocol/reported-skills.ts";

/**
 * Which sandbox executions run in. `auto`: bubblewrap; where it does not work the worker refuses every run. `bwrap`: the worker does not start
 * without it. `none`: no isolation. `optional`: bubblewrap where it works, otherwise `none`.
 */
export type SandboxChoice = "auto" | "bwrap" | "none" | "optional";

const BACKENDS: readonly string[] = ["direct", "command", "kubernetes"];
const SANDBOX_CHOICES: readonly string[] = ["auto", "bwrap", "none", "optional"] satisfies SandboxChoice[];
const SLOTS_MAX = 256;
/** What our own process inside a sandbox needs, and a little for others. */
const MEMORY_BYTES_MIN = 128 * 1024 ** 2;
const PROCESSES_MIN = 64;

/** Every environment variable of the worker. Only the first two must be set. */
function readSettings(env: Env) {
  return readConfig(env, {
    /** Origin of the platform; the worker service is under `/rpc`. */
    url: required.url("MILLWRIGHT_URL"),
    /** Worker key (`mww_…`) of a team or of the platform. Must be set, unless there is an offer. */
    workerKey:
      env["MILLWRIGHT_WORKER_OFFER"] || env["MILLWRIGHT_WORKER_OFFER_FILE"]
        ? optional.string("MILLWRIGHT_WORKER_KEY", "")
        : required.secret("MILLWRIGHT_WORKER_KEY"),
    /** One-run mode: the offer token (`mwo_…`) of the one execution that this process takes, runs and ends with; or a file that holds it. */
    offer: optional.secret("MILLWRIGHT_WORKER_OFFER"),
    offerFile: optional.string("MILLWRIGHT_WORKER_OFFER_FILE", ""),
    /** Executions at once. */
    slots: optional.int("MILLWRIGHT_WORKER_SLOTS", 4),
    /** Shown as worker_host; several processes may share one. */
    workerId: optional.string("MILLWRIGHT_WORKER_ID", hostname()),
    sandbox: optional.string("MILLWRIGHT_SANDBOX", "auto"),
    /** Memory of a run whose runner asks for none, and the most that a runner may ask for (default: the machine's). */
    memoryBytes: optional.size("MILLWRIGHT_SANDBOX_MEMORY", "4G"),
    memoryBytesMax: optional.size("MILLWRIGHT_SANDBOX_MEMORY_MAX"),
    /** Processors of a run; 0 = all. */
    cpus: optional.int("MILLWRIGHT_SANDBOX_CPUS", 0),
    /** Processes and threads of a run. */
    processes: optional.int("MILLWRIGHT_SANDBOX_PROCESSES", 4_096),
    /** One file of a run, its workspace and home together, and its /tmp, which lies in memory. */
    fileBytes: optional.size("MILLWRIGHT_SANDBOX_FILE", "4G"),
    diskBytes: optional.size("MILLWRIGHT_SANDBOX_DISK", "10G"),
    temporaryBytes: optional.size("MILLWRIGHT_SANDBOX_TMP", "1G"),
    /** A sandbox that has not started after this time is given up, and its run is tried again. */
    sandboxStartTimeoutMs: optional.duration("MILLWRIGHT_SANDBOX_START_TIMEOUT", "15s"),
    /** Files and directories of a run's workspace and home together. */
    files: optional.int("MILLWRIGHT_SANDBOX_FILES", 1_000_000),
    /** "auto", "none", or a directory of cgroup version 2 that is delegated to the worker. */
    cgroup: optional.string("MILLWRIGHT_SANDBOX_CGROUP", "auto"),
    /** Hosts that runs may reach, such as `registry.npmjs.org`, `*.example.com`, `example.com:8443` or `*`; none by default. */
    egressAllow: optional.list("MILLWRIGHT_EGRESS_ALLOW", []),
    /** Internal addresses and networks that runs may reach all the same, when the host is allowed. */
    egressInternal: optional.list("MILLWRIGHT_EGRESS_INTERNAL", []),
    /** The machine's own tools are those of this image: the worker runs in it. */
    ownImage: optional.string("MILLWRIGHT_WORKER_IMAGE", ""),
    /** Checkouts on this machine, `owner/repo=/directory`, whose skills are listed while this worker is connected. */
    skillCheckouts: optional.list("MILLWRIGHT_WORKER_SKILLS", []),
    /** Internal hosts and networks that models and code hosts of teams may be at; none by default. */
    allowedInternalHosts,
    /** Root file systems, `image=directory`; every other image gets the machine's own tools. */
    rootfs: optional.list("MILLWRIGHT_SANDBOX_ROOTFS", []),
    /** Claude Code's program, in a directory of its own, where runs may use it; none by default. */
    claude: optional.string("MILLWRIGHT_HARNESS_CLAUDE", ""),
    /** The same of Codex. */
    codex: optional.string("MILLWRIGHT_HARNESS_CODEX", ""),
    /** The same of Gemini CLI (its `bundle/gemini.js`) and opencode. */
    gemini: optional.string("MILLWRIGHT_HARNESS_GEMINI", ""),
    opencode: optional.string("MILLWRIGHT_HARNESS_OPENCODE", ""),
    /** Workspaces, spools and process records; what dead workers left here is removed at the start. */
    dir: optional.string("MILLWRIGHT_WORKER_DIR", ".millwright/worker"),
    /** Who a worker that is started as root becomes: a name or number; by default a number that nobody has. "root" stays root. */
    user: optional.string("MILLWRIGHT_WORKER_USER", ""),
    /** Directories of local repositories, for a worker that is started as root: they are opened for its user. */
    localRepositoryRoots: optional.list("MILLWRIGHT_LOCAL_REPOSITORY_ROOTS", []),
    /** Copies of repositories, all together; those not used for the longest time go first. */
    repositoryCacheBytes: optional.size("MILLWRIGHT_REPOSITORY_CACHE", "10G"),
    /** Workspaces that are kept for the next execution of their run, all together; the oldest go first, and all when the disk is full. */
    parkedBytes: optional.size("MILLWRIGHT_PARKED_WORKSPACES", "10G"),
    /**
     * How long running executions may continue after SIGTERM; then they are interrupted and their leases returned, which takes up to 25 s more. The
     * service manager must not kill the process before.
     */
    drainMs: optional.duration("MILLWRIGHT_WORKER_DRAIN", "1m"),
    /** Started by a parent that holds the other end of standard input (or an IPC channel): end when it closes, and leave SIGINT to the parent. */
    supervised: optional.bool("MILLWRIGHT_WORKER_SUPERVISED", false),
    /** Where executions run: "direct" (here), "command" or "kubernetes" (each on a machine of its own, by a worker in one-run mode). */
    backend: optional.string("MILLWRIGHT_BACKEND", "direct"),
    /** Harnesses that those machines have. */
    backendHarnesses: optional.list("MILLWRIGHT_BACKEND_HARNESSES", ["oz"]),
    /** How long a machine may take from its order until it takes its execution. */
    backendStartTimeoutMs: optional.duration("MILLWRIGHT_BACKEND_START_TIMEOUT", "10m"),
    /** Backend "command": for `/bin/sh -c`, an execution as JSON on standard input; exit code 0 = somebody else answers for it now. */
    dispatchCommand: optional.string("MILLWRIGHT_BACKEND_DISPATCH_COMMAND", ""),
    /** Backend "command": ends what may be left of a machine; none by default. */
    cancelCommand: optional.string("MILLWRIGHT_BACKEND_CANCEL_COMMAND", ""),
    /** How long either command may take. */
    commandTimeoutMs: optional.duration("MILLWRIGHT_BACKEND_COMMAND_TIMEOUT", "60s"),
    logLevel: optional.string("LOG_LEVEL", "info"),
  });
}

/** The offer token, from wherever it is; undefined in ordinary operation. Errors: those of reading the file. */
const readOffer = ({
  offer,
  offerFile,
}: {
  readonly offer: string | undefined;
  readonly offerFile: string;
}): string | undefined => (offerFile === "" ? offer : readFileSync(offerFile, "utf8").trim());

export type WorkerConfig = Omit<ReturnType<typeof readSettings>, "sandbox" | "logLevel"> & {
  readonly sandbox: SandboxChoice;
  /** What commands of the operator's are started with. */
  readonly hostEnv: Readonly<Record<string, string>>;
  /** Of the backend "kubernetes". */
  readonly kubernetes?: KubernetesSettings;
  /** OpenTelemetry's own variables. */
  readonly tracing: TracingSettings;
  readonly logLevel: "debug" | "info" | "warn" | "error" | "silent";
};

/** Reads the worker's configuration. Errors: one Error naming every variable at fault, never its value. */
export function loadConfig(env: Env): WorkerConfig {
  const read = readSettings(env);
  const offerFaults = fault("MILLWRIGHT_WORKER_OFFER_FILE", () => readOffer(read));
  const settings = { ...read, offer: offerFaults.length > 0 ? undefined : readOffer(read) };
  const faults = [
    ...offerFaults,
    ...(settings.offer === undefined || leaseOfOffer(settings.offer)
      ? []
      : ["MILLWRIGHT_WORKER_OFFER must be an offer token"]),
    ...(SANDBOX_CHOICES.includes(settings.sandbox)
      ? []
      : ['MILLWRIGHT_SANDBOX must be "auto", "bwrap", "none" or "optional"']),
    ...(settings.slots >= 1 && settings.slots <= SLOTS_MAX
      ? []
      : [`MILLWRIGHT_WORKER_SLOTS must be from 1 to ${SLOTS_MAX}`]),
    ...(settings.memoryBytes >= MEMORY_BYTES_MIN ? [] : ["MILLWRIGHT_SANDBOX_MEMORY must be at least 128M"]),
    ...(settings.processes >= PROCESSES_MIN ? [] : [`MILLWRIGHT_SANDBOX_PROCESSES must be at least ${PROCESSES_MIN}`]),
    ...(settings.rootfs.every((entry) => /^[^=]+=\//.test(entry))
      ? []
      : ["MILLWRIGHT_SANDBOX_ROOTFS must be image=/directory, with commas between"]),
    ...(BACKENDS.includes(settings.backend)
      ? []
      : [`MILLWRIGHT_BACKEND must be ${BACKENDS.map((name) => `"${name}"`).join(" or ")}`]),
    ...(settings.backend === "command" && settings.dispatchCommand === ""
      ? ["MILLWRIGHT_BACKEND_DISPATCH_COMMAND is required by the command backend"]
      : []),
    ...(settings.backend !== "direct" && settings.offer !== undefined
      ? ["MILLWRIGHT_BACKEND and MILLWRIGHT_WORKER_OFFER exclude each other"]
      : []),
    ...fault("MILLWRIGHT_WORKER_SKILLS", () => settings.skillCheckouts.map(readCheckout)),
    ...fault("MILLWRIGHT_EGRESS_ALLOW", () => hostPatterns(settings.egressAllow)),
    ...fault("MILLWRIGHT_EGRESS_INTERNAL", () => addressSet(settings.egressInternal)),
    ...(["debug", "info", "warn", "error", "silent"].includes(settings.logLevel)
      ? []
      : ["LOG_LEVEL must be debug, info, warn, error or silent"]),
  ];
  if (faults.length > 0) throw new Error(`Invalid configuration:\n  ${faults.join("\n  ")}`);
  const kubernetes = settings.backend === "kubernetes" ? { kubernetes: kubernetesSettings(env) } : {};
  return Object.freeze({
    ...settings,
    ...kubernetes,
    hostEnv: { PATH: env["PATH"] ?? "", HOME: env["HOME"] ?? "" },
    tracing: loadTracingSettings(env),
  }) as WorkerConfig;
}

/** Network names and hosts are no secrets: what is wrong with one is said. */
function fault(name: string, read: () => unknown): string[] {
  try {
    read();
    return [];
  } catch (error) {
    return [`${name}: ${(error as Error).message}`];
  }
}
