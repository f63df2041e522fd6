import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { WorkerConfig } from "../config.ts";
import { Cgroups } from "../sandbox/cgroups.ts";
import { find, findBubblewrap } from "../sandbox/bubblewrap.ts";
import { reachableView, type ReachableView, type User, type WantedPath } from "./reachable-paths.ts";
import { IDENTITY_MAPPED_MOUNT } from "./identity-mapped-mount.ts";

/** Who a worker that was started as root becomes: a number that neither people nor systemd's dynamic users have (uids.systemd.io). */
const DEFAULT_UID = 60_599;
const MAIN = fileURLToPath(new URL(`../main${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
const PREPARING = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
const CHECK_TIMEOUT_MS = 20_000;

/**
 * Starts this program again as an unprivileged user if it runs as root, in the same process and before it has done anything. The user reaches the program, the
 * worker's directory and what the configuration names, in a view of the file system of its own; local repositories appear as the user's. Returns if there
 * is nothing to drop, or the reason if that is not possible here. Errors: throws for a user that does not exist.
 */
export async function dropPrivileges(config: WorkerConfig, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (process.getuid?.() !== 0 || config.user === "root" || config.backend !== "direct" || process.platform !== "linux")
    return undefined;
  if (!process.execve || !find("/usr/bin/setpriv", "/bin/setpriv") || !find("/usr/bin/unshare", "/bin/unshare"))
    return "setpriv and unshare are not installed.";
  const user = userNamed(config.user);
  if (user.uid === 0) return undefined;
  const dir = resolve(config.dir);
  try {
    return await become(config, user, dir, env);
  } catch (error) {
    return (error as Error).message; // a container may have no right to give files away
  }
}

async function become(config: WorkerConfig, user: User, dir: string, env: NodeJS.ProcessEnv): Promise<string> {
  giveDirectory(dir, user);
  const mapped = mappedRoots(config, dir);
  const view = reachableView(pathsOf(config, dir, mapped), user);
  const shell = ["/bin/sh", "-c", scriptOf(view, mapped, user), "sh"];
  const needsMounts = view.covers.length > 0 || mapped.length > 0; // which a container may not allow
  const start = needsMounts
    ? [find("/usr/bin/unshare", "/bin/unshare")!, "--mount", "--propagation", "private", "--", ...shell]
    : shell;
  const fault = faultOf(start, dir, config.sandbox);
  if (fault !== undefined) {
    giveDirectory(dir, { uid: 0, gid: 0 });
    return fault;
  }
  const cgroups = await Cgroups.open(config.cgroup);
  if (cgroups instanceof Cgroups) cgroups.delegateTo(user);
  const offer =
    config.offer === undefined ? {} : { MILLWRIGHT_WORKER_OFFER: config.offer, MILLWRIGHT_WORKER_OFFER_FILE: "" }; // the file may be root's
  return process.execve!(start[0]!, [...start, process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    ...env,
    ...offer,
    HOME: dir,
    MILLWRIGHT_WORKER_DIR: dir,
  });
}

function userNamed(name: string): User {
  if (name === "") return { uid: DEFAULT_UID, gid: DEFAULT_UID };
  if (/^\d+$/.test(name)) return { uid: Number(name), gid: Number(name) };
  const id = (flag: string): number =>
    Number(execFileSync("id", [flag, "--", name], { env: PREPARING, encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** The worker's directory becomes the user's, with all that a worker which ran as somebody else left there. */
function giveDirectory(dir: string, { uid, gid }: User): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if ([dir, ...readdirSync(dir).map((name) => join(dir, name))].every((path) => lstatSync(path).uid === uid)) return;
  execFileSync("chown", ["-hR", `${uid}:${gid}`, "--", dir], { env: PREPARING });
  chownSync(dir, uid, gid);
}

/** What the worker reads and writes. */
function pathsOf(config: WorkerConfig, dir: string, mapped: readonly string[]): WantedPath[] {
  const directoriesIn = (entries: readonly string[]): string[] =>
    entries.map((entry) => entry.slice(entry.indexOf("=") + 1));
  const harnesses = [config.claude, config.codex, config.gemini, config.opencode]
    .filter((file) => file !== "")
    .map((file) => dirname(resolve(file)));
  const paths = [
    installation(),
    process.execPath,
    dir,
    ...harnesses,
    ...directoriesIn(config.rootfs),
    ...directoriesIn(config.skillCheckouts),
    ...config.localRepositoryRoots,
  ];
  return paths.map((path) => ({ path, willOwn: existsSync(path) && mapped.includes(realpathSync(path)) }));
}

/** The directory that holds this program and the packages that it imports. */
function installation(): string {
  let directory = dirname(MAIN);
  while (!existsSync(join(directory, "node_modules")) && dirname(directory) !== directory)
    directory = dirname(directory);
  return directory;
}

/** Local repositories, which may be root's. None that contains the worker's directory: what lies there beside it, such as the platform's key, is not for the worker. */
const mappedRoots = ({ localRepositoryRoots }: WorkerConfig, dir: string): string[] =>
  localRepositoryRoots
    .filter((root) => existsSync(root))
    .map((root) => realpathSync(root))
    .filter((root) => !`${realpathSync(dir)}${sep}`.startsWith(root.endsWith(sep) ? root : root + sep));

/** Prepares the view and becomes the user; its arguments are the program to start. */
function scriptOf({ covers, paths }: ReachableView, roots: readonly string[], { uid, gid }: User): string {
  const stashed = paths.map((path, index) => ({
    path: quoted(path),
    stash: `"$s"/${index}`,
    make: statSync(path).isDirectory() ? "mkdir -p" : "touch",
  }));
  return [
    "set -e; umask 022",
    ...(covers.length === 0 ? [] : ['s=$(mktemp -d); mount -t tmpfs -o mode=0700,size=256k millwright "$s"']),
    ...stashed.map(({ path, stash, make }) => `${make} ${stash}; mount --rbind ${path} ${stash}`),
    ...covers.map((cover) => `mount -t tmpfs -o mode=0755,size=256k millwright ${quoted(cover)}`),
    ...stashed.map(
      ({ path, stash, make }) =>
        `mkdir -p "$(dirname ${path})"; test -e ${path} || ${make} ${path}; mount --move ${stash} ${path}`,
    ),
    ...(covers.length === 0 ? [] : ['umount "$s"; rmdir "$s"']),
    // Where it is not possible, the permissions of the repositories decide.
    ...roots
      .map((root) => ({ root, owner: statSync(root).uid }))
      .filter(({ owner }) => owner !== uid)
      .map(
        ({ root, owner }) =>
          `perl -e ${quoted(IDENTITY_MAPPED_MOUNT)} ${quoted(root)} ${owner} ${uid} >/dev/null 2>&1 || :`,
      ),
    "cd /",
    `exec setpriv --reuid ${uid} --regid ${gid} --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"`,
  ].join("\n");
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Tries all of it: what does not work for the user. */
function faultOf(start: readonly string[], dir: string, sandbox: WorkerConfig["sandbox"]): string | undefined {
  const bubblewrap = sandbox === "none" ? undefined : findBubblewrap();
  const checks = [
    `test -r ${quoted(MAIN)}`,
    `test -x ${quoted(process.execPath)}`,
    `test -w ${quoted(dir)}`,
    ...(bubblewrap ? [`${bubblewrap} --unshare-user --unshare-pid --ro-bind / / true`] : []),
  ];
  const { status, stderr } = spawnSync(
    start[0]!,
    [
      ...start.slice(1),
      "/bin/sh",
      "-c",
      checks.map((check) => `{ ${check} || { echo 'failed: ${check.replaceAll("'", "")}' >&2; exit 1; }; }`).join("\n"),
    ],
    { env: PREPARING, encoding: "utf8", timeout: CHECK_TIMEOUT_MS },
  );
  return status === 0 ? undefined : stderr.trim() || "it cannot be tried.";
}
