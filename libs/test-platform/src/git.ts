import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Runs git with a test identity, independent of the git configuration of this machine. */
export const git = (directory: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-C", directory, ...args], {
    encoding: "utf8",
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: directory,
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_SYSTEM: "/dev/null",
    },
  });

/**
 * Creates the bare repository `<root>/<owner>/<name>.git` with one commit of these files on `main`. Returns its
 * directory.
 */
export function bareRepository(
  root: string,
  owner: string,
  name: string,
  files: Readonly<Record<string, string>>,
): string {
  const bare = join(root, owner, `${name}.git`);
  const checkout = checkoutOf(bare);
  write(checkout, files);
  git(checkout, "init", "--quiet", "--initial-branch=main");
  git(checkout, "add", "--all");
  git(checkout, "commit", "--quiet", "--message", "Begin");
  mkdirSync(dirname(bare), { recursive: true });
  git(root, "clone", "--quiet", "--bare", checkout, bare);
  return bare;
}

/**
 * Writes files to a repository created by `bareRepository`, commits them and pushes to `main`. With `isForced` the
 * commit replaces the previous one by a forced push. Returns the new head.
 */
export function pushFiles(bare: string, files: Readonly<Record<string, string>>, { isForced = false } = {}): string {
  const checkout = checkoutOf(bare);
  write(checkout, files);
  git(checkout, "add", "--all");
  git(
    checkout,
    "commit",
    "--quiet",
    "--allow-empty",
    "--message",
    `Change ${randomUUID()}`,
    ...(isForced ? ["--amend"] : []),
  );
  git(checkout, "push", "--quiet", ...(isForced ? ["--force"] : []), bare, "HEAD:main");
  return git(checkout, "rev-parse", "HEAD").trim();
}

/** Returns `<root>/<owner>-<name>-checkout` for `<root>/<owner>/<name>.git`. */
const checkoutOf = (bare: string): string => `${dirname(bare)}-${basename(bare, ".git")}-checkout`;

function write(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
}
