import { execFile } from "node:child_process";
import { lstat } from "node:fs/promises";

const PROGRAMS = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };

/**
 * Removes a directory with all its content, of any depth. Links are removed, never followed. Directories that an agent
 * made unwritable (a module cache is, by design) are made writable first. Nothing may write to the directory
 * concurrently. Throws the message of `rm`.
 */
export async function removeTree(path: string): Promise<void> {
  if ((await run("rm", ["-rf", "--", path])) === undefined) return;
  if (!(await exists(path))) return;
  await run("find", [path, "-type", "d", "!", "-perm", "-700", "-exec", "chmod", "u+rwx", "{}", ";"]);
  const fault = await run("rm", ["-rf", "--", path]);
  if (fault !== undefined) throw new Error(fault);
}

/** Runs a program. Returns the end of its standard error, or undefined if it succeeded. */
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
