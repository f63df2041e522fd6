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
 * The sandbox of executions.
 * - `auto`: bubblewrap. If it does not work, the worker refuses every run.
 * - `bwrap`: bubblewrap. If it does not work, the worker does not start.
 * - `none`: no isolation.
 * - `optional`: bubblewrap if it works, otherwise `none`.
 */
export type SandboxChoice = "auto" | "bwrap" | "none" | "optional";

const BACKENDS: readonly string[] = ["direct", "command", "kubernetes"];
const SANDBOX_CHOICES: readonly string[] = ["auto", "bwrap", "none", "optional"] satisfies SandboxChoice[];
const SLOTS_MAX = 256;
/** The minimum for the platform's own process inside a sandbox and a few others. */
const MEMORY_BYTES_MIN = 128 * 1024 ** 2;
const PROCESSES_MIN = 64;

/** Reads every environment variable of the worker. Only the first two are required. */
function readSettings(env: Env) {
  return readConfig(env, {
    /** The platform's origin; the worker service is under `/rpc`. */
    url: required.url("MILLWRIGHT_URL"),
    /** The worker key (`mww_…`) of a team or of the platform. Required unless an offer is set. */
    workerKey:
      env["MILLWRIGHT_WORKER_OFFER"] || env["MILLWRIGHT_WORKER_OFFER_FILE"]
        ? optional.string("MILLWRIGHT_WORKER_KEY", "")
        : required.secret("MILLWRIGHT_WORKER_KEY"),
    /**
     * One-run mode: the offer token (`mwo_…`) of the single execution that this process runs before it exits, or the
     * path of a file that contains the token.
     */
    offer: optional.secret("MILLWRIGHT_WORKER_OFFER"),
    offerFile: optional.string("MILLWRIGHT_WORKER_OFFER_FILE", ""),
    /** The maximum number of concurrent executions. */
    slots: optional.int("MILLWRIGHT_WORKER_SLOTS", 4),
    /** The name that runs show as `worker_host`. Several processes may share it. */
    workerId: optional.string("MILLWRIGHT_WORKER_ID", hostname()),
    sandbox: optional.string("MILLWRIGHT_SANDBOX", "auto"),
    /**
     * The memory of a run whose runner specifies none, and the maximum that a runner may specify (default: the
     * machine's memory).
     */
    memoryBytes: optional.size("MILLWRIGHT_SANDBOX_MEMORY", "4G"),
    memoryBytesMax: optional.size("MILLWRIGHT_SANDBOX_MEMORY_MAX"),
    /** Processors of a run; 0: all. */
    cpus: optional.int("MILLWRIGHT_SANDBOX_CPUS", 0),
    /** The maximum number of processes and threads of a run. */
    processes: optional.int("MILLWRIGHT_SANDBOX_PROCESSES", 4_096),
    /** Size limits of a run: of one file, of its workspace and home together, and of its `/tmp`, which is in memory. */
    fileBytes: optional.size("MILLWRIGHT_SANDBOX_FILE", "4G"),
    diskBytes: optional.size("MILLWRIGHT_SANDBOX_DISK", "10G"),
    temporaryBytes: optional.size("MILLWRIGHT_SANDBOX_TMP", "1G"),
    /** The sandbox start timeout. When it expires, the run is retried. */
    sandboxStartTimeoutMs: optional.duration("MILLWRIGHT_SANDBOX_START_TIMEOUT", "15s"),
    /** The maximum number of files and directories in a run's workspace and home together. */
    files: optional.int("MILLWRIGHT_SANDBOX_FILES", 1_000_000),
    /** "auto", "none", or the path of a cgroup v2 directory that is delegated to the worker. */
    cgroup: optional.string("MILLWRIGHT_SANDBOX_CGROUP", "auto"),
    /**
     * Hosts that runs may connect to, such as `registry.npmjs.org`, `*.example.com`, `example.com:8443` or `*`; none by
     * default.
     */
    egressAllow: optional.list("MILLWRIGHT_EGRESS_ALLOW", []),
    /** Internal addresses and networks that runs may connect to if the host is also allowed. */
    egressInternal: optional.list("MILLWRIGHT_EGRESS_INTERNAL", []),
    /** The image that the worker itself runs in: the machine's own tools are those of this image. */
    ownImage: optional.string("MILLWRIGHT_WORKER_IMAGE", ""),
    /**
     * Checkouts on this machine, as `owner/repo=/directory`. Their skills are listed while this worker is connected.
     */
    skillCheckouts: optional.list("MILLWRIGHT_WORKER_SKILLS", []),
    /** Internal hosts and networks where models and code hosts of teams may be; none by default. */
    allowedInternalHosts,
    /**
     * Root file systems, as `image=directory`. If any is set, runs of other images are not claimed; otherwise every
     * image is replaced by the machine's own tools.
     */
    rootfs: optional.list("MILLWRIGHT_SANDBOX_ROOTFS", []),
    /** The path of Claude Code's executable, in its own directory, if runs may use Claude Code; none by default. */
    claude: optional.string("MILLWRIGHT_HARNESS_CLAUDE", ""),
    /** The path of the Codex executable, with the same rules. */
    codex: optional.string("MILLWRIGHT_HARNESS_CODEX", ""),
    /** The paths of Gemini CLI (its `bundle/gemini.js`) and of opencode, with the same rules. */
    gemini: optional.string("MILLWRIGHT_HARNESS_GEMINI", ""),
    opencode: optional.string("MILLWRIGHT_HARNESS_OPENCODE", ""),
    /**
     * The directory of workspaces, spools and process records. The worker removes the remains of dead workers from it
     * at startup.
     */
    dir: optional.string("MILLWRIGHT_WORKER_DIR", ".millwright/worker"),
    /**
     * The user that a worker started as root switches to: a name or number. Default: an unused user id. "root" keeps
     * root.
     */
    user: optional.string("MILLWRIGHT_WORKER_USER", ""),
    /** Directories of local repositories. A worker that is started as root makes them accessible to its user. */
    localRepositoryRoots: optional.list("MILLWRIGHT_LOCAL_REPOSITORY_ROOTS", []),
    /** The maximum size of all cached repository copies together. The least recently used are removed first. */
    repositoryCacheBytes: optional.size("MILLWRIGHT_REPOSITORY_CACHE", "10G"),
    /**
     * The maximum size of all workspaces that are retained for the next execution of their run. The oldest are removed
     * first; all are removed when the disk is full.
     */
    parkedBytes: optional.size("MILLWRIGHT_PARKED_WORKSPACES", "10G"),
    /**
     * How long running executions may continue after SIGTERM. Then they are interrupted and their leases are returned,
     * which takes up to 25 s more. The service manager must not kill the process earlier.
     */
    drainMs: optional.duration("MILLWRIGHT_WORKER_DRAIN", "1m"),
    /**
     * Whether a parent process supervises the worker through standard input or an IPC channel. If so, the worker exits
     * when that channel closes, and ignores SIGINT, which the parent handles.
     */
    supervised: optional.bool("MILLWRIGHT_WORKER_SUPERVISED", false),
    /**
     * Where executions run: "direct" (on this machine), "command" or "kubernetes" (each on its own machine, by a worker
     * in one-run mode).
     */
    backend: optional.string("MILLWRIGHT_BACKEND", "direct"),
    /** The harnesses that are installed on the backend's machines. */
    backendHarnesses: optional.list("MILLWRIGHT_BACKEND_HARNESSES", ["oz"]),
    /** How long a machine may take from its request until it accepts its execution. */
    backendStartTimeoutMs: optional.duration("MILLWRIGHT_BACKEND_START_TIMEOUT", "10m"),
    /**
     * Backend "command": the command that requests a machine, run by `/bin/sh -c` with an execution as JSON on standard
     * input. Exit code 0: another system is now responsible for the execution.
     */
    dispatchCommand: optional.string("MILLWRIGHT_BACKEND_DISPATCH_COMMAND", ""),
    /** Backend "command": the command that ends what may remain of a machine; none by default. */
    cancelCommand: optional.string("MILLWRIGHT_BACKEND_CANCEL_COMMAND", ""),
    /** The timeout of both commands. */
    commandTimeoutMs: optional.duration("MILLWRIGHT_BACKEND_COMMAND_TIMEOUT", "60s"),
    logLevel: optional.string("LOG_LEVEL", "info"),
  });
}

/**
 * Returns the offer token from its variable or its file; undefined outside one-run mode. Throws the errors of reading
 * the file.
 */
const readOffer = ({
  offer,
  offerFile,
}: {
  readonly offer: string | undefined;
  readonly offerFile: string;
}): string | undefined => (offerFile === "" ? offer : readFileSync(offerFile, "utf8").trim());

export type WorkerConfig = Omit<ReturnType<typeof readSettings>, "sandbox" | "logLevel"> & {
  readonly sandbox: SandboxChoice;
  /** The base environment of the operator's commands. */
  readonly hostEnv: Readonly<Record<string, string>>;
  /** Set for the backend "kubernetes". */
  readonly kubernetes?: KubernetesSettings;
  /** The standard OpenTelemetry variables. */
  readonly tracing: TracingSettings;
  readonly logLevel: "debug" | "info" | "warn" | "error" | "silent";
};

/**
 * Reads the worker's configuration. Throws one error that names every invalid variable, without the values of secrets.
 */
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

/** Returns the read error as a fault. Its message may contain the value, because networks and hosts are not secrets. */
function fault(name: string, read: () => unknown): string[] {
  try {
    read();
    return [];
  } catch (error) {
    return [`${name}: ${(error as Error).message}`];
  }
}
