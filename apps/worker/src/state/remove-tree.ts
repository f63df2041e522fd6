import { execFile } from "node:child_process";
import { lstat } from "node:fs/promises";

const PROGRAMS = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };

/**
 * Removes a directory with all it holds, however deep. Links are removed, never followed; directories that an agent made unwritable
 * (a module cache is, by design) are opened first. Nothing may be writing there any more. Errors: throws what `rm` reports.
 */
export async function removeTree(path: string): Promise<void> {
  if ((await run("rm", ["-rf", "--", path])) === undefined) return;
  if (!(await exists(path))) return;
  await run("find", [path, "-type", "d", "!", "-perm", "-700", "-exec", "chmod", "u+rwx", "{}", ";"]);
  const fault = await run("rm", ["-rf", "--", path]);
  if (fault !== undefined) throw new Error(fault);
}

/** The end of the errors of a program; undefined if it succeeded. */
function run(program: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(program, args, { env: PROGRAMS, maxBuffer: 64 * 1024 * 1024 }, (error, _stdout, stderr) =>
      resolve(error ? stderr.slice(-2_000) || error.message : undefined),
    );
  });
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );
