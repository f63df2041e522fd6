import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { addressSet } from "@millwright/addresses";
import { optional, partsOf, readConfig, required, type Env, type Rule, type ValuesOf } from "@millwright/config";
import { allowedInternalHosts } from "@millwright/outbound";
import { logLevel, tracingOf, tracingSettings } from "@millwright/telemetry";
import { checkKubernetes, kubernetesSettings, kubernetesVariables } from "./backends/kubernetes/settings.ts";
import { hostPatterns } from "./egress/host-patterns.ts";
import { leaseOfOffer } from "./protocol/offer.ts";
import { readCheckout } from "./protocol/reported-skills.ts";

const SLOTS_MAX = 256;

/** The sandbox of executions. Both the worker and the standalone platform, which passes it to its workers, read it. */
const sandbox = optional.oneOf(
  "MILLWRIGHT_SANDBOX",
  "[The sandbox](../guides/workers.md#the-sandbox) of runs. `auto`: bubblewrap; if it does not work, runs are refused. `bwrap`: the worker does not start without it. `none`: no isolation. `optional`: bubblewrap if it works, otherwise `none`.",
  { values: ["auto", "bwrap", "none", "optional"], default: "auto" },
);

/** Returns the setting of a list whose entries a function checks; it throws an Error that names the invalid entry. */
const checkedList = (
  name: string,
  description: string,
  { allowed, check }: { readonly allowed: string; readonly check: (entries: readonly string[]) => unknown },
) =>
  optional.custom(name, description, {
    allowed,
    default: "",
    parse(text): readonly string[] {
      const entries = partsOf(text);
      check(entries);
      return entries;
    },
  });

function checkRootfs(entries: readonly string[]): void {
  const invalid = entries.find((entry) => !/^[^=]+=\//.test(entry));
  if (invalid !== undefined) throw new Error(`${invalid} is not image=/directory`);
}

function parseOffer(token: string): string {
  if (!leaseOfOffer(token)) throw new Error("it is malformed");
  return token;
}

/** Every environment variable of the worker. Only the first two are required. */
export const settings = {
  url: required.url("MILLWRIGHT_URL", "The platform's origin; the worker service is under `/rpc`."),
  workerKey: optional.secret(
    "MILLWRIGHT_WORKER_KEY",
    "The worker key (`mww_…`) of a team or of the platform. Required unless an offer is set.",
    { default: "" },
  ),
  offer: optional.custom(
    "MILLWRIGHT_WORKER_OFFER",
    "One-run mode: the offer token (`mwo_…`) of the single execution that this process runs before it exits.",
    { allowed: "an offer token", secret: true, parse: parseOffer },
  ),
  offerFile: optional.string("MILLWRIGHT_WORKER_OFFER_FILE", "The path of a file that contains the offer token.", {
    default: "",
  }),
  slots: optional.int("MILLWRIGHT_WORKER_SLOTS", "The maximum number of concurrent executions.", {
    default: 4,
    min: 1,
    max: SLOTS_MAX,
  }),
  workerId: optional.string(
    "MILLWRIGHT_WORKER_ID",
    "The name that runs show as `worker_host`. Several processes may share it.",
    { default: hostname(), shownDefault: "the host name" },
  ),
  sandbox,
  memoryBytes: optional.size("MILLWRIGHT_SANDBOX_MEMORY", "The memory of a run whose runner specifies none.", {
    default: "4G",
    min: "128M", // the platform's own process inside a sandbox and a few others
  }),
  memoryBytesMax: optional.size(
    "MILLWRIGHT_SANDBOX_MEMORY_MAX",
    "The maximum memory that a runner may specify. Default: the machine's memory.",
  ),
  cpus: optional.int("MILLWRIGHT_SANDBOX_CPUS", "Processors of a run; 0: all.", { default: 0 }),
  processes: optional.int("MILLWRIGHT_SANDBOX_PROCESSES", "The maximum number of processes and threads of a run.", {
    default: 4_096,
    min: 64, // the platform's own process inside a sandbox and a few others
  }),
  fileBytes: optional.size("MILLWRIGHT_SANDBOX_FILE", "The maximum size of one file of a run.", { default: "4G" }),
  diskBytes: optional.size("MILLWRIGHT_SANDBOX_DISK", "The maximum size of a run's workspace and home together.", {
    default: "10G",
  }),
  temporaryBytes: optional.size("MILLWRIGHT_SANDBOX_TMP", "The size of a run's `/tmp`, which is in memory.", {
    default: "1G",
  }),
  sandboxStartTimeoutMs: optional.duration(
    "MILLWRIGHT_SANDBOX_START_TIMEOUT",
    "How long a sandbox may take to start. Then the run is retried.",
    { default: "15s" },
  ),
  files: optional.int(
    "MILLWRIGHT_SANDBOX_FILES",
    "The maximum number of files and directories in a run's workspace and home together.",
    { default: 1_000_000 },
  ),
  cgroup: optional.string(
    "MILLWRIGHT_SANDBOX_CGROUP",
    '"auto", "none", or the path of a cgroup v2 directory that is delegated to the worker.',
    { default: "auto" },
  ),
  egressAllow: checkedList(
    "MILLWRIGHT_EGRESS_ALLOW",
    "Hosts that runs may connect to, such as `registry.npmjs.org`, `*.example.com`, `example.com:8443` or `*`; none by default.",
    { allowed: "hosts with commas between", check: hostPatterns },
  ),
  egressInternal: checkedList(
    "MILLWRIGHT_EGRESS_INTERNAL",
    "Internal addresses and networks that runs may connect to if the host is also allowed.",
    { allowed: "addresses and networks with commas between", check: addressSet },
  ),
  ownImage: optional.string(
    "MILLWRIGHT_WORKER_IMAGE",
    "The image that the worker itself runs in: the machine's own tools are those of this image.",
    { default: "" },
  ),
  skillCheckouts: checkedList(
    "MILLWRIGHT_WORKER_SKILLS",
    "Checkouts on this machine, as `owner/repo=/directory`. Their skills are listed while this worker is connected.",
    { allowed: "owner/repo=/directory, with commas between", check: (entries) => entries.map(readCheckout) },
  ),
  allowedInternalHosts,
  rootfs: checkedList(
    "MILLWRIGHT_SANDBOX_ROOTFS",
    "Root file systems, as `image=/directory`. If any is set, runs of other images are not claimed; otherwise every image is replaced by the machine's own tools.",
    { allowed: "image=/directory, with commas between", check: checkRootfs },
  ),
  claude: optional.string(
    "MILLWRIGHT_HARNESS_CLAUDE",
    "The path of Claude Code's executable, in its own directory, if runs may use Claude Code; none by default.",
    { default: "" },
  ),
  codex: optional.string("MILLWRIGHT_HARNESS_CODEX", "The path of the Codex executable, with the same rules.", {
    default: "",
  }),
  gemini: optional.string(
    "MILLWRIGHT_HARNESS_GEMINI",
    "The path of Gemini CLI (its `bundle/gemini.js`), with the same rules.",
    { default: "" },
  ),
  opencode: optional.string("MILLWRIGHT_HARNESS_OPENCODE", "The path of opencode, with the same rules.", {
    default: "",
  }),
  dir: optional.string(
    "MILLWRIGHT_WORKER_DIR",
    "The directory of workspaces, spools and process records. The worker removes the remains of dead workers from it at startup.",
    { default: ".millwright/worker" },
  ),
  user: optional.string(
    "MILLWRIGHT_WORKER_USER",
    'The user that a worker started as root switches to: a name or number. Default: an unused user id. "root" keeps root.',
    { default: "" },
  ),
  localRepositoryRoots: optional.list(
    "MILLWRIGHT_LOCAL_REPOSITORY_ROOTS",
    "Directories of local repositories. A worker that is started as root makes them accessible to its user.",
    { default: [] },
  ),
  gitCaFile: optional.string(
    "MILLWRIGHT_GIT_CA_FILE",
    "A PEM file with the certificate authorities for hosts of repositories, instead of the machine's. Other connections: `NODE_EXTRA_CA_CERTS`.",
  ),
  repositoryCacheBytes: optional.size(
    "MILLWRIGHT_REPOSITORY_CACHE",
    "The maximum size of all cached repository copies together. The least recently used are removed first.",
    { default: "10G" },
  ),
  parkedBytes: optional.size(
    "MILLWRIGHT_PARKED_WORKSPACES",
    "The maximum size of all workspaces that are retained for the next execution of their run. The oldest are removed first; all are removed when the disk is full.",
    { default: "10G" },
  ),
  drainMs: optional.duration(
    "MILLWRIGHT_WORKER_DRAIN",
    "How long running executions may continue after SIGTERM. Then they are interrupted and their leases are returned, which takes up to 25 s more. The service manager must not kill the process earlier.",
    { default: "1m" },
  ),
  supervised: optional.bool(
    "MILLWRIGHT_WORKER_SUPERVISED",
    "Whether a parent process supervises the worker through standard input or an IPC channel. If so, the worker exits when that channel closes, and ignores SIGINT, which the parent handles.",
    { default: false },
  ),
  backend: optional.oneOf(
    "MILLWRIGHT_BACKEND",
    "[Where executions run](../guides/worker-backends.md): on this machine, or each on its own machine, by a worker in one-run mode.",
    { values: ["direct", "command", "kubernetes"], default: "direct" },
  ),
  backendHarnesses: optional.list(
    "MILLWRIGHT_BACKEND_HARNESSES",
    "The harnesses that are installed on the backend's machines.",
    { default: ["oz"] },
  ),
  backendStartTimeoutMs: optional.duration(
    "MILLWRIGHT_BACKEND_START_TIMEOUT",
    "How long a machine may take from its request until it accepts its execution.",
    { default: "10m" },
  ),
  dispatchCommand: optional.string(
    "MILLWRIGHT_BACKEND_DISPATCH_COMMAND",
    'Backend "command": the command that requests a machine, run by `/bin/sh -c` with an execution as JSON on standard input. Exit code 0: another system is now responsible for the execution.',
    { default: "" },
  ),
  cancelCommand: optional.string(
    "MILLWRIGHT_BACKEND_CANCEL_COMMAND",
    'Backend "command": the command that ends what may remain of a machine; none by default.',
    { default: "" },
  ),
  commandTimeoutMs: optional.duration("MILLWRIGHT_BACKEND_COMMAND_TIMEOUT", "The timeout of both commands.", {
    default: "60s",
  }),
  logLevel,
  tracing: tracingSettings,
  kubernetes: kubernetesVariables,
};

type Values = ValuesOf<typeof settings>;

/**
 * Returns the offer token from its variable or its file; undefined outside one-run mode. Throws if the file cannot be
 * read or contains something else.
 */
function readOffer({ offer, offerFile }: Values): string | undefined {
  if (offerFile === "") return offer;
  try {
    return parseOffer(readFileSync(offerFile, "utf8").trim());
  } catch (error) {
    throw new Error(`MILLWRIGHT_WORKER_OFFER_FILE must name a file with an offer token: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

const rules: readonly Rule<Values>[] = [
  { variables: ["MILLWRIGHT_WORKER_OFFER", "MILLWRIGHT_WORKER_OFFER_FILE"], check: (values) => void readOffer(values) },
  {
    variables: ["MILLWRIGHT_WORKER_KEY", "MILLWRIGHT_WORKER_OFFER"],
    check({ workerKey, offer, offerFile }) {
      if (workerKey === "" && offer === undefined && offerFile === "")
        throw new Error("MILLWRIGHT_WORKER_KEY is required: a worker key of a team or of the platform.");
    },
  },
  {
    variables: ["MILLWRIGHT_BACKEND"],
    check({ backend, dispatchCommand }) {
      if (backend === "command" && dispatchCommand === "")
        throw new Error("MILLWRIGHT_BACKEND_DISPATCH_COMMAND is required by the command backend.");
    },
  },
  {
    variables: ["MILLWRIGHT_BACKEND"],
    check({ backend, offer, offerFile }) {
      if (backend !== "direct" && (offer !== undefined || offerFile !== ""))
        throw new Error(
          "MILLWRIGHT_BACKEND and MILLWRIGHT_WORKER_OFFER exclude each other: a machine of a backend runs its one execution directly.",
        );
    },
  },
  {
    variables: ["MILLWRIGHT_BACKEND"],
    check({ backend, kubernetes }) {
      if (backend === "kubernetes") checkKubernetes(kubernetes);
    },
  },
];

export type WorkerConfig = ReturnType<typeof loadConfig>;

export type SandboxChoice = Values["sandbox"];

/**
 * Reads the worker's configuration. Throws one error that lists every problem, without the values of secrets.
 */
export function loadConfig(env: Env) {
  const values = readConfig(env, settings, rules);
  return Object.freeze({
    ...values,
    offer: readOffer(values),
    /** The base environment of the operator's commands. */
    hostEnv: { PATH: env["PATH"] ?? "", HOME: env["HOME"] ?? "" },
    /** Set for the backend "kubernetes". */
    kubernetes: values.backend === "kubernetes" ? kubernetesSettings(env, values.kubernetes) : undefined,
    tracing: tracingOf(values.tracing, env),
  });
}
