/** A cgroup controller that can enforce a limit. */
export type Controller = "memory" | "pids" | "cpu";
const CONTROLLERS: readonly string[] = ["memory", "pids", "cpu"] satisfies Controller[];

/** The directories of this process's own cgroup that are mounted. */
export type Hierarchies = {
  /** Version 1: one directory per controller. */
  readonly v1: ReadonlyMap<Controller, string>;
  readonly v2?: string;
};

/** Parses the contents of /proc/self/mountinfo and /proc/self/cgroup. */
export function hierarchiesOf(mountinfo: string, cgroup: string): Hierarchies {
  const own = new Map(
    cgroup
      .split("\n")
      .filter(Boolean)
      .map((line) => {
        const [, controllers = "", ...path] = line.split(":");
        return [controllers, path.join(":")] as const;
      }),
  );
  const v1 = new Map<Controller, string>();
  let v2: string | undefined;
  for (const mount of mountinfo.split("\n").flatMap(parseMount)) {
    if (mount.type === "cgroup2") v2 ??= directoryOf(mount, own.get(""));
    if (mount.type !== "cgroup") continue;
    for (const [controllers, path] of own) {
      const names = controllers.split(",");
      if (!names.every((name) => mount.options.includes(name))) continue;
      const directory = directoryOf(mount, path);
      for (const name of names)
        if (CONTROLLERS.includes(name) && directory !== undefined) v1.set(name as Controller, directory);
    }
  }
  return { v1, v2 };
}

type Mount = {
  readonly root: string;
  readonly target: string;
  readonly type: string;
  readonly options: readonly string[];
};

/** `id parent device root target options [optional…] - type source superoptions` (proc_pid_mountinfo(5)). */
function parseMount(line: string): Mount[] {
  const [before = "", after] = line.split(" - ");
  if (after === undefined) return [];
  const [, , , root = "", target = ""] = before.split(" ");
  const [type = "", , options = ""] = after.split(" ");
  return [{ root: unescapeOctal(root), target: unescapeOctal(target), type, options: options.split(",") }];
}

const unescapeOctal = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));

/**
 * Returns the directory of a cgroup in a mount, or undefined if the mount does not contain it: a container may see only
 * a part of the tree.
 */
function directoryOf({ root, target }: Mount, path: string | undefined): string | undefined {
  if (path === undefined || path.includes("/..")) return undefined;
  if (root === "/") return path === "/" ? target : target + path;
  if (path === root) return target;
  return path.startsWith(`${root}/`) ? target + path.slice(root.length) : undefined;
}
