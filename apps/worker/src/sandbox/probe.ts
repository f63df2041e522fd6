import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { findBubblewrap, findPrlimit } from "./bubblewrap.ts";
import { Cgroups } from "./cgroups.ts";
import { DEFAULT_LIMITS, type LimitSettings } from "./limits.ts";
import { userPool } from "./outside-user.ts";
import type { Sandbox } from "./sandbox.ts";
import { type SandboxHost, type SandboxKind } from "./spec.ts";
import { hasClosedUserns, startWorkspaceSandbox } from "./start-sandbox.ts";

/** The sandbox capabilities of a worker. `features` is reported to the platform, and `warnings` to the operator. */
export type ProbeResult = {
  readonly kind: SandboxKind;
  readonly features: readonly string[];
  readonly host: SandboxHost;
  readonly warnings: readonly string[];
};

export type ProbeConfig = { readonly sandbox: "auto" | "bwrap" | "none" | "optional" } & Partial<
  Omit<LimitSettings, "memoryBytesMax">
> & {
    readonly memoryBytesMax?: number | undefined;
    readonly cgroup?: string;
    /** Root file systems as `image=directory`. */
    readonly rootfs?: readonly string[];
    readonly slots?: number;
    readonly egressAllow?: readonly string[];
    readonly egressInternal?: readonly string[];
  };

/** The two remedies, which are part of every message about a missing sandbox. */
export const INSTALL_HINT =
  "Install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap), or set MILLWRIGHT_SANDBOX=none to execute " +
  "commands as the worker's user, without isolation. Then restart the worker.";
const NOT_ISOLATED = "The commands of runs can read and change everything that the worker's user can.";

/**
 * Determines by a self-test which sandbox this host supports and what enforces its limits. Throws if `bwrap` is
 * required and does not work. With `auto` and `optional`, the result is then `none` with a warning. With `auto`, the
 * worker refuses every run (`refusalOf`).
 */
export async function probeSandbox(config: ProbeConfig): Promise<ProbeResult> {
  const cgroups = await Cgroups.open(config.cgroup ?? "auto");
  const limits: LimitSettings = {
    ...DEFAULT_LIMITS,
    ...defined(config),
    memoryBytesMax: config.memoryBytesMax ?? totalmem(),
  };
  const egress = { allow: config.egressAllow ?? [], internal: config.egressInternal ?? [] };
  const base = { limits, egress, cgroups: cgroups instanceof Cgroups ? cgroups : undefined };
  const weak =
    cgroups instanceof Cgroups
      ? []
      : [
          `Limits apply to each process, and the totals of a run are only checked periodically: cgroups are not available (${cgroups.unavailable}).`,
        ];
  const none = (warning: string): ProbeResult => ({
    kind: "none",
    features: featuresOf({ ...base, kind: "none" }),
    host: { ...base, kind: "none" },
    warnings: [warning, ...weak],
  });
  if (config.sandbox === "none") return none(`Runs are not sandboxed (MILLWRIGHT_SANDBOX=none). ${NOT_ISOLATED}`);

  const users = userPool(config.slots ?? 1);
  const hosts: SandboxHost[] = [
    ...(users ? [{ ...base, kind: "bwrap" as const, users }] : []),
    { ...base, kind: "bwrap" },
  ];
  const faults: string[] = [];
  for (const host of hosts) {
    const fault = await selfTest(host);
    if (fault !== undefined) faults.push(fault);
    else
      return withImages(host, config.rootfs ?? [], [
        ...weak,
        ...(faults.length > 0
          ? [`Sandboxes run as root on the host, because no other user is available: ${faults.join(" ")}`]
          : []),
      ]);
  }
  if (config.sandbox === "bwrap")
    throw new Error(`The bubblewrap sandbox does not work here: ${faults.at(-1)} ${INSTALL_HINT}`);
  if (config.sandbox === "optional") return none(`Runs are not sandboxed: ${faults.at(-1)} ${NOT_ISOLATED}`);
  return none(`No run is executed, because the sandbox does not work here: ${faults.at(-1)} ${INSTALL_HINT}`);
}

const defined = ({
  memoryBytes,
  processes,
  cpus,
  fileBytes,
  diskBytes,
  files,
  temporaryBytes,
}: ProbeConfig): Partial<LimitSettings> =>
  Object.fromEntries(
    Object.entries({ memoryBytes, processes, cpus, fileBytes, diskBytes, files, temporaryBytes }).filter(
      ([, value]) => value !== undefined,
    ),
  );

/**
 * Returns the host with the root file systems in which the platform's programs run. The others are omitted with a
 * warning.
 */
async function withImages(
  host: SandboxHost,
  entries: readonly string[],
  warnings: readonly string[],
): Promise<ProbeResult> {
  const rootfs = new Map<string, string>();
  const failed: string[] = [];
  for (const entry of entries) {
    const [image, directory] = [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)];
    const fault = await selfTest(host, directory);
    if (fault === undefined) rootfs.set(image, directory);
    else failed.push(`The root file system of ${image} is not used: ${fault}`);
  }
  const found = { ...host, rootfs };
  return { kind: "bwrap", features: featuresOf(found), host: found, warnings: [...warnings, ...failed] };
}

/** Returns the names of the isolation features, and each limit with what enforces it. */
function featuresOf({ kind, cgroups, users }: SandboxHost): string[] {
  const borders = [
    "filesystem",
    "no-network",
    "process-namespace",
    "no-capabilities",
    ...(hasClosedUserns() ? ["no-nested-namespaces"] : []),
    ...(users ? ["own-user"] : []),
  ];
  const by = (controller: "memory" | "pids" | "cpu"): string | undefined =>
    cgroups?.controllers.includes(controller) ? `cgroup-${cgroups.version}` : undefined;
  const each = findPrlimit() ? "prlimit" : undefined;
  const ofRoot = kind === "bwrap" && process.getuid?.() === 0 && !users;
  const limits = {
    memory: by("memory") ?? (each ? "prlimit+watch" : "watch"),
    // the kernel does not enforce the process limit for root
    processes: by("pids") ?? (each && kind === "bwrap" && !ofRoot ? "prlimit+watch" : "watch"),
    cpu: by("cpu"),
    "file-size": each,
    disk: "watch",
  };
  return [
    ...(kind === "bwrap" ? borders : []),
    ...Object.entries(limits).flatMap(([name, holder]) => (holder === undefined ? [] : [`${name}-limit=${holder}`])),
  ];
}

/** Returns the first isolation feature that does not work, or undefined if all work. */
async function selfTest(host: SandboxHost, rootfs?: string): Promise<string | undefined> {
  if (!findBubblewrap()) return "bubblewrap is not installed.";
  const dir = await mkdtemp(join(tmpdir(), "millwright-probe-"));
  try {
    await writeFile(join(dir, "canary"), "x");
    const sandbox = await startWorkspaceSandbox(host, dir, {}, rootfs === undefined ? {} : { rootfs });
    try {
      return await firstFault(sandbox, join(dir, "canary"));
    } finally {
      await sandbox.stop();
    }
  } catch (error) {
    return error instanceof Error ? error.message : "unknown error";
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function firstFault(sandbox: Sandbox, canary: string): Promise<string | undefined> {
  const checks: [command: string, fault: string][] = [
    ["test $(id -u) = 1000", "it does not run as its own user."],
    ["echo x > /workspace/x && rm /workspace/x", "its workspace cannot be written."],
    [`! test -e '${canary}'`, "it sees files of the host."],
    ["! touch /usr/millwright-probe 2>/dev/null", "it can write to the host's programs."],
    ["test $(grep -c : /proc/net/dev) = 1", "it sees the network."],
  ];
  for (const [command, fault] of checks) {
    const { exitCode } = await sandbox.exec(command, { timeoutMs: 10_000 });
    if (exitCode !== 0) return fault;
  }
  return undefined;
}
