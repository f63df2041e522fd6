import { existsSync, lstatSync, readlinkSync } from "node:fs";
import type { SandboxSpec } from "./spec.ts";

/** Where our Node and `sandbox-init` are inside. */
export const INSIDE_NODE = "/opt/millwright/bin/node";
export const INSIDE_INIT = "/opt/millwright/init";
/** The host's own tools come first; our Node serves where the host has none. */
export const INSIDE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/millwright/bin";

/** The host's tool chain; `bin`, `lib` and their kin are links into it, or directories of their own on older systems. */
const TOP_DIRECTORIES = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/** Without secrets, needed by ordinary programs. */
const ETC_FILES = ["/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types"];
/** Only where the network is shared: names, and certificates to check. */
const ETC_NETWORK_FILES = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/ca-certificates", "/etc/pki"];

export const find = (...paths: string[]): string | undefined => paths.find((path) => existsSync(path));
export const findBubblewrap = (): string | undefined => find("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap");
export const findPrlimit = (): string | undefined => find("/usr/bin/prlimit", "/bin/prlimit");

/** Command line of a sandbox: our own file system, no network, no capability, no way to more (execution design §7.2). */
export function bubblewrapArguments(spec: SandboxSpec, own: { node: string; init: string; etc: string; disableUserns: boolean; infoFd: number }, command: string[]): string[] {
  return [
    ...["--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"],
    ...(own.disableUserns ? ["--disable-userns"] : []),
    ...(spec.network ? ["--share-net"] : []),
    ...["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", "--info-fd", String(own.infoFd)],
    ...["--ro-bind", "/usr", "/usr", ...TOP_DIRECTORIES.flatMap(topDirectory)],
    ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/run", "--dir", "/var", "--symlink", "../tmp", "/var/tmp"],
    ...["--ro-bind", `${own.etc}/passwd`, "/etc/passwd", "--ro-bind", `${own.etc}/group`, "/etc/group"],
    ...[...ETC_FILES, ...(spec.network ? ETC_NETWORK_FILES : [])].flatMap((path) => ["--ro-bind-try", path, path]),
    ...["--ro-bind", own.node, INSIDE_NODE, "--ro-bind", own.init, INSIDE_INIT],
    ...spec.mounts.flatMap((mount) => [mount.writable ? "--bind" : "--ro-bind", mount.source, mount.target]),
    ...["--chdir", "/", "--", ...command],
  ];
}

export const PASSWD = "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
export const GROUP = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n";

function topDirectory(name: string): string[] {
  const found = lstatSync(`/${name}`, { throwIfNoEntry: false });
  if (!found) return [];
  if (found.isSymbolicLink()) return ["--symlink", readlinkSync(`/${name}`), `/${name}`];
  return ["--ro-bind", `/${name}`, `/${name}`];
}
