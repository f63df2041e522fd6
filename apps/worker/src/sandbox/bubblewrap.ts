import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SandboxSpec } from "./spec.ts";

/** The directory of the platform's Node.js and `sandbox-init` inside a sandbox. */
const INSIDE = "/.millwright";
export const INSIDE_NODE = `${INSIDE}/node`;
export const INSIDE_INIT = `${INSIDE}/init`;
/** The host's own tools come first. The platform's Node.js is used if the host has none. */
export const INSIDE_PATH = `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${INSIDE}`;

/**
 * The directories of the host's tool chain. `bin`, `lib` and similar ones are links into `usr`, or real directories on
 * older systems.
 */
const TOP_DIRECTORIES = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/** Directories of a root file system that are created for each sandbox instead of mounted. */
const OWN_DIRECTORIES = new Set(["proc", "sys", "dev", "run", "tmp", "home", "workspace", ".millwright"]);
/** Files that ordinary programs require; they contain no secrets. */
const ETC_FILES = [
  "/etc/alternatives",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/localtime",
  "/etc/mime.types",
  "/etc/ssl/certs",
  "/etc/ssl/openssl.cnf",
  "/etc/pki/tls/certs",
  "/etc/pki/ca-trust/extracted",
];
/** Entries of `/proc` about the machine that programs do not require: its hardware, kernel, keys and other users. */
const MASKED_PROC = [
  ...[
    "acpi",
    "asound",
    "buddyinfo",
    "bus",
    "cgroups",
    "cmdline",
    "config.gz",
    "consoles",
    "crypto",
    "devices",
    "diskstats",
    "dma",
    "driver",
    "execdomains",
    "fb",
    "fs",
    "interrupts",
    "iomem",
    "ioports",
  ],
  ...[
    "irq",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "locks",
    "mdstat",
    "misc",
    "modules",
    "mtrr",
    "pagetypeinfo",
    "partitions",
    "pressure",
  ],
  ...[
    "sched_debug",
    "schedstat",
    "scsi",
    "slabinfo",
    "softirqs",
    "swaps",
    "sysrq-trigger",
    "sysvipc",
    "timer_list",
    "timer_stats",
    "tty",
    "vmallocinfo",
    "zoneinfo",
  ],
];
const SHARED_MEMORY_BYTES = 256 * 1024 ** 2;

export const find = (...paths: string[]): string | undefined => paths.find((path) => existsSync(path));
export const findBubblewrap = (): string | undefined => find("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap");
export const findPrlimit = (): string | undefined => find("/usr/bin/prlimit", "/bin/prlimit");

let options: string | undefined;
/** Returns whether the installed bubblewrap supports an option; older versions lack some. */
function knows(option: string): boolean {
  const program = findBubblewrap();
  options ??= program === undefined ? "" : execFileSync(program, ["--help"], { encoding: "utf8", env: {} });
  return options.includes(option);
}

/** Returns whether sandboxes can be prevented from creating user namespaces. */
export const canDisableUserns = (): boolean => knows("--disable-userns");

/**
 * The host paths that bubblewrap mounts. `rootfs` is set if bubblewrap finds the root file system at a different path
 * than the worker.
 */
export type OwnSources = {
  readonly node: string;
  readonly init: string;
  readonly etc: string;
  readonly tmp: string;
  readonly disableUserns: boolean;
  readonly rootfs?: string;
};

/**
 * Returns the arguments of a sandbox: its own file system, no network, no capabilities, no way to gain privileges, and
 * a size limit for everything that can grow.
 */
export function bubblewrapArguments(spec: SandboxSpec, own: OwnSources): string[] {
  return [
    ...["--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"],
    ...(own.disableUserns ? ["--disable-userns"] : []),
    ...["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"],
    ...(spec.rootfs === undefined ? machineTools() : imageTools(spec.rootfs, own.rootfs)),
    ...["--ro-bind", `${own.etc}/passwd`, "/etc/passwd", "--ro-bind", `${own.etc}/group`, "/etc/group"],
    ...[
      "--proc",
      "/proc",
      ...maskedProc(),
      "--dev",
      "/dev",
      ...memoryDirectory("/dev/shm", SHARED_MEMORY_BYTES, `${own.tmp}/shm`),
      "--remount-ro",
      "/dev",
    ],
    ...[...memoryDirectory("/tmp", spec.limits.temporaryBytes, `${own.tmp}/tmp`), "--dir", "/run"],
    ...(spec.rootfs === undefined ? ["--dir", "/var", "--symlink", "../tmp", "/var/tmp"] : []),
    ...["--ro-bind", own.node, INSIDE_NODE, "--ro-bind", own.init, INSIDE_INIT],
    ...(spec.relays ?? []).flatMap(({ port, socket }) => ["--ro-bind", dirname(socket), relayDirectory(port)]),
    ...spec.mounts.flatMap((mount) => [mount.writable ? "--bind" : "--ro-bind", mount.source, mount.target]),
    ...["--remount-ro", "/", "--chdir", "/"],
  ];
}

/** Returns the directory of a relay's socket inside the sandbox. */
export const relayDirectory = (port: number): string => `/run/relay-${port}`;

export const PASSWD =
  "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
export const GROUP = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n";

const maskedProc = (): string[] =>
  MASKED_PROC.flatMap((name) => {
    const found = statSync(`/proc/${name}`, { throwIfNoEntry: false });
    if (!found) return [];
    return found.isDirectory()
      ? ["--tmpfs", `/proc/${name}`, "--remount-ro", `/proc/${name}`]
      : ["--ro-bind", "/dev/null", `/proc/${name}`];
  });

/**
 * Returns the arguments of a directory in memory with a size limit. If bubblewrap does not support size limits, the
 * directory is on disk and counts towards the workspace.
 */
const memoryDirectory = (target: string, bytes: number, onDisk: string): string[] =>
  knows("--size BYTES") ? ["--size", String(bytes), "--tmpfs", target] : ["--bind", onDisk, target];

const machineTools = (): string[] => [
  ...TOP_DIRECTORIES.flatMap((name) => topDirectory("/", name)),
  ...ETC_FILES.flatMap((path) => ["--ro-bind-try", path, path]),
];

const imageTools = (rootfs: string, seenAt?: string): string[] =>
  readdirSync(rootfs)
    .filter((name) => !OWN_DIRECTORIES.has(name))
    .flatMap((name) => topDirectory(rootfs, name, seenAt));

function topDirectory(root: string, name: string, seenAt = root): string[] {
  const found = lstatSync(join(root, name), { throwIfNoEntry: false });
  if (!found) return [];
  if (found.isSymbolicLink()) return ["--symlink", readlinkSync(join(root, name)), `/${name}`];
  return ["--ro-bind", join(seenAt, name), `/${name}`];
}
