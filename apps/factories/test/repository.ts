import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A repository with a work tree, below a directory that may be allowed as a root. */
export class Repository {
  readonly root: string = mkdtempSync(join(realpathSync(tmpdir()), "millwright-repositories-"));
  readonly path: string;

  constructor() {
    this.path = join(this.root, "team", "factory");
    this.begin();
  }

  /** Creates a new repository at the same path. */
  begin(branch = "main"): void {
    rmSync(this.path, { recursive: true, force: true });
    mkdirSync(this.path, { recursive: true });
    this.git("init", "-q", "-b", branch);
  }

  git(...args: string[]): string {
    return execFileSync(
      "git",
      ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always", ...args],
      {
        cwd: this.path,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" },
      },
    ).trim();
  }

  write(files: readonly { path: string; content: string | Uint8Array }[]): void {
    for (const { path, content } of files) {
      mkdirSync(dirname(join(this.path, path)), { recursive: true });
      writeFileSync(join(this.path, path), content);
    }
  }

  /** Commits these files to the current branch and returns the commit. */
  commit(files: readonly { path: string; content: string | Uint8Array }[] = []): string {
    this.write(files);
    this.git("add", "-A");
    this.git("commit", "-q", "--allow-empty", "-m", "change");
    return this.git("rev-parse", "HEAD");
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
