import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const ENTER = 1;
const LIST_AND_ENTER = 5;

/** `willOwn`: the user becomes the owner of the path in the view. */
export type WantedPath = { readonly path: string; readonly willOwn?: boolean };

export type User = { readonly uid: number; readonly gid: number };

/**
 * A view of the file system in which an unprivileged user can access some paths. `covers` are replaced by empty
 * directories; then `paths` are mounted in them again.
 */
export type ReachableView = { readonly covers: readonly string[]; readonly paths: readonly string[] };

/**
 * Plans a view in which a user can access all `wanted` paths, such as an installation below `/root`. Only directories
 * that the user cannot enter are covered, and nothing else in them is part of the view. Paths that do not exist are
 * ignored.
 */
export function reachableView(wanted: readonly WantedPath[], user: User): ReachableView {
  const allows = (path: string, bits: number): boolean => (modeFor(path, user) & bits) === bits;
  const covers = new Set<string>();
  const paths = new Set<string>();
  for (const { path: named, willOwn = false } of wanted.filter(({ path }) => existsSync(path))) {
    const path = realpathSync(named);
    const closed = ancestorsOf(path).find((ancestor) => !allows(ancestor, ENTER));
    const isClosedItself = !willOwn && statSync(path).isDirectory() && !allows(path, LIST_AND_ENTER);
    if (closed !== undefined) covers.add(closed);
    else if (isClosedItself) covers.add(path);
    if (isClosedItself) for (const entry of readdirSync(path)) paths.add(join(path, entry));
    else if (closed !== undefined) paths.add(path);
  }
  return { covers: [...covers].sort(), paths: [...paths].sort() };
}

/** Returns the ancestors of a path, from the root of the file system to the parent. */
function ancestorsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...ancestorsOf(parent), parent];
}

/** Returns the three permission bits of a path that apply to a user. */
function modeFor(path: string, { uid, gid }: User): number {
  const found = statSync(path);
  return found.mode >> (found.uid === uid ? 6 : found.gid === gid ? 3 : 0);
}
