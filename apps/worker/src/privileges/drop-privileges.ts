import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { WorkerConfig } from "../config.ts";
import { Cgroups } from "../sandbox/cgroups.ts";
import { find, findBubblewrap } from "../sandbox/bubblewrap.ts";
import { reachableView, type ReachableView, type User, type WantedPath } from "./reachable-paths.ts";
import { IDENTITY_MAPPED_MOUNT } from "./identity-mapped-mount.ts";

/**
 * The default user of a worker that was started as root: an id that is used neither for people nor for systemd's
 * dynamic users (uids.systemd.io).
 */
const DEFAULT_UID = 60_599;
const MAIN = fileURLToPath(new URL(`../main${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
const PREPARATION_ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
const CHECK_TIMEOUT_MS = 20_000;

/**
 * Restarts this program as an unprivileged user if it runs as root. It does so in the same process, before the program
 * has done anything else. The user gets its own view of the file system, with access to the program, the worker's
 * directory and the configured paths; local repositories appear as owned by the user. Returns undefined if there are no
 * privileges to drop, and the reason if dropping them is not possible. Throws if the user does not exist.
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
    return await switchUser(config, user, dir, env);
  } catch (error) {
    return (error as Error).message; // for example, a container may not be allowed to change file owners
  }
}

async function switchUser(config: WorkerConfig, user: User, dir: string, env: NodeJS.ProcessEnv): Promise<string> {
  giveDirectory(dir, user);
  const mapped = mappedRoots(config, dir);
  const view = reachableView(pathsOf(config, dir, mapped), user);
  const shell = ["/bin/sh", "-c", scriptOf(view, mapped, user), "sh"];
  const needsMounts = view.covers.length > 0 || mapped.length > 0; // a container may not allow mounts
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
    // the offer file may be readable only by root
    config.offer === undefined ? {} : { MILLWRIGHT_WORKER_OFFER: config.offer, MILLWRIGHT_WORKER_OFFER_FILE: "" };
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
    Number(execFileSync("id", [flag, "--", name], { env: PREPARATION_ENV, encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/**
 * Makes the user the owner of the worker's directory, including what a worker that ran as a different user left in it.
 */
function giveDirectory(dir: string, { uid, gid }: User): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if ([dir, ...readdirSync(dir).map((name) => join(dir, name))].every((path) => lstatSync(path).uid === uid)) return;
  execFileSync("chown", ["-hR", `${uid}:${gid}`, "--", dir], { env: PREPARATION_ENV });
  chownSync(dir, uid, gid);
}

/** Returns the paths that the worker reads and writes. */
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

/** Returns the directory that contains this program and the packages that it imports. */
function installation(): string {
  let directory = dirname(MAIN);
  while (!existsSync(join(directory, "node_modules")) && dirname(directory) !== directory)
    directory = dirname(directory);
  return directory;
}

/**
 * Returns the roots of local repositories, which may be owned by root. Excludes roots that contain the worker's
 * directory: the files next to it, such as the platform's key, must not be readable by the worker.
 */
const mappedRoots = ({ localRepositoryRoots }: WorkerConfig, dir: string): string[] =>
  localRepositoryRoots
    .filter((root) => existsSync(root))
    .map((root) => realpathSync(root))
    .filter((root) => !`${realpathSync(dir)}${sep}`.startsWith(root.endsWith(sep) ? root : root + sep));

/** Returns a script that sets up the view and switches to the user. Its arguments are the program to start. */
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
    // If the mapped mount is not possible, the permissions of the repositories apply.
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

/** Runs all steps as a check. Returns the first error, or undefined if everything works for the user. */
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
    { env: PREPARATION_ENV, encoding: "utf8", timeout: CHECK_TIMEOUT_MS },
  );
  return status === 0 ? undefined : stderr.trim() || "the check could not be run.";
}
