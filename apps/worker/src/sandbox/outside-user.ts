import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { find } from "./bubblewrap.ts";
import type { UserPool } from "./spec.ts";

/** Numbers that neither people nor systemd's dynamic users have (uids.systemd.io). */
const FIRST_UID = 60_600;

/**
 * Makes what lies in directories of the worker reachable for another user, in a mount namespace of its own, and becomes that user. The
 * directories on the way stay closed to everybody else.
 */
const STAGE = [
  "set -e; s=$1; u=$2; shift 2; n=0",
  'mount -t tmpfs -o mode=0755,size=64k millwright "$s"',
  'while [ "$1" != -- ]; do mkdir "$s/$n"; mount --bind "$1" "$s/$n"; n=$((n+1)); shift; done; shift',
  'mount --rbind "$s" /tmp',
  'exec setpriv --reuid "$u" --regid "$u" --clear-groups "$@"',
].join("\n");

/**
 * Users for sandboxes where the worker is root and has the tools; undefined elsewhere: sandboxes then run as the worker's own user. Sandboxes over
 * the same directory share a user, and a later one gets the user that owns its files if nothing else runs as that user.
 */
export function userPool(size: number): UserPool | undefined {
  if (
    process.getuid?.() !== 0 ||
    !find("/usr/bin/setpriv", "/bin/setpriv") ||
    !find("/usr/bin/unshare", "/bin/unshare")
  )
    return undefined;
  const free = Array.from({ length: size }, (_, index) => FIRST_UID + index);
  const taken = new Map<string, { readonly uid: number; sandboxes: number }>();
  return {
    take(directory) {
      const known = taken.get(directory);
      if (known) known.sandboxes += 1;
      const owner = known ? -1 : free.indexOf(statSync(directory, { throwIfNoEntry: false })?.uid ?? -1);
      const entry = known ?? { uid: free.splice(Math.max(owner, 0), 1)[0] ?? FIRST_UID + size, sandboxes: 1 };
      taken.set(directory, entry);
      return entry.uid;
    },
    give(directory) {
      const entry = taken.get(directory);
      if (!entry || (entry.sandboxes -= 1) > 0) return;
      taken.delete(directory);
      free.push(entry.uid);
    },
  };
}

/** An argument list that starts a program as `uid`, with these directories of the host at `/tmp/0`, `/tmp/1` and so on. */
export const asUser = (
  uid: number,
  stage: string,
  directories: readonly string[],
  argv: readonly string[],
): string[] => [
  ...[
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "--",
    "/bin/sh",
    "-c",
    STAGE,
    "sh",
    stage,
    String(uid),
    ...directories,
    "--",
    ...argv,
  ],
];

/** Gives files to a user, links not followed. Errors: throws with what `chown` says. */
export function giveTo(uid: number, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(
      "chown",
      ["-hR", `${uid}:${uid}`, "--", path],
      { env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } },
      (error, _stdout, stderr) => (error ? reject(new Error(stderr.trim() || error.message)) : resolve()),
    );
  });
}
