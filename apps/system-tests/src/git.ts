import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Runs git as nobody in particular, untouched by the configuration of this machine. */
export const git = (directory: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-C", directory, ...args], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"] ?? "", HOME: directory, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" },
  });

/** Makes the bare repository `<root>/<owner>/<name>.git` with one commit of these files on `main`; answers its directory. */
export function bareRepository(root: string, owner: string, name: string, files: Readonly<Record<string, string>>): string {
  const checkout = join(root, `${owner}-${name}-checkout`);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(checkout, path)), { recursive: true });
    writeFileSync(join(checkout, path), content);
  }
  git(checkout, "init", "--quiet", "--initial-branch=main");
  git(checkout, "add", "--all");
  git(checkout, "commit", "--quiet", "--message", "Begin");
  const bare = join(root, owner, `${name}.git`);
  mkdirSync(dirname(bare), { recursive: true });
  git(root, "clone", "--quiet", "--bare", checkout, bare);
  return bare;
}
