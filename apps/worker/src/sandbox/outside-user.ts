import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { find } from "./bubblewrap.ts";
import type { UserPool } from "./spec.ts";

/** The first id of a range that is used neither for people nor for systemd's dynamic users (uids.systemd.io). */
const FIRST_UID = 60_600;

/**
 * Makes directories of the worker accessible to another user in a separate mount namespace, and switches to that user.
 * Their parent directories stay inaccessible to all other users.
 */
const STAGE = [
  "set -e; s=$1; u=$2; shift 2; n=0",
  'mount -t tmpfs -o mode=0755,size=64k millwright "$s"',
  'while [ "$1" != -- ]; do mkdir "$s/$n"; mount --bind "$1" "$s/$n"; n=$((n+1)); shift; done; shift',
  'mount --rbind "$s" /tmp',
  'exec setpriv --reuid "$u" --regid "$u" --clear-groups "$@"',
].join("\n");

/**
 * Returns a pool of users for sandboxes if the worker is root and has the required tools. Otherwise returns undefined,
 * and sandboxes run as the worker's own user. Sandboxes of the same directory share a user. A later sandbox gets the
 * user that owns the directory's files if no other sandbox uses it.
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

/**
 * Returns an argument list that starts a program as `uid`, with these host directories at `/tmp/0`, `/tmp/1` and so on.
 */
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

/** Changes the owner of files; links are not followed. Throws with the message of `chown`. */
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
