import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { worker } from "@millwright/contracts";

const IDENTITY = {
  GIT_AUTHOR_NAME: "Test",
  GIT_AUTHOR_EMAIL: "test@example.com",
  GIT_COMMITTER_NAME: "Test",
  GIT_COMMITTER_EMAIL: "test@example.com",
};

/** Runs git on the host like a user, without this machine's configuration. */
export function git(directory: string, ...args: string[]): string {
  const env = {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    HOME: directory,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    ...IDENTITY,
  };
  return execFileSync("git", ["-C", directory, "-c", "safe.directory=*", "-c", "init.defaultBranch=main", ...args], {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}

/** Creates a bare repository `<dir>/code/acme/<name>.git` with one commit of these files on its branch `main`. */
export function aBareRepository(
  dir: string,
  files: Record<string, string> = { "README.md": "hello\n" },
  name = "shop",
): string {
  const bare = join(dir, "code", "acme", `${name}.git`);
  const checkout = join(dir, `checkout-${name}`);
  mkdirSync(dirname(bare), { recursive: true });
  mkdirSync(checkout, { recursive: true });
  git(checkout, "init", "--quiet");
  commitFiles(checkout, files, "Begin");
  git(dir, "clone", "--quiet", "--bare", checkout, bare);
  return bare;
}

export function commitFiles(checkout: string, files: Record<string, string>, message: string): string {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(checkout, path)), { recursive: true });
    writeFileSync(join(checkout, path), content);
  }
  git(checkout, "add", "--all");
  git(checkout, "commit", "--quiet", "--message", message);
  return git(checkout, "rev-parse", "HEAD");
}

/** Returns the repository in the form of an assignment. */
export const aRepository = (cloneUrl: string, fields: Partial<worker.Repository> = {}): worker.Repository =>
  create(worker.RepositorySchema, {
    owner: "acme",
    name: "shop",
    cloneUrl,
    workBranch: "agent/run-1",
    codeHost: "local",
    ...fields,
  } as worker.Repository);
