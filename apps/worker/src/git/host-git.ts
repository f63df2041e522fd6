import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A git command of the worker's own failed; the text is git's, without credentials. */
export class GitFailed extends Error {
  /** Of the setup that fails with it. */
  readonly reason: string;
  constructor(what: string, detail: string, reason = "workspace_setup") {
    super(`${what}: ${detail.trim() || "git gave no reason"}`);
    this.name = "GitFailed";
    this.reason = reason;
  }
}

/** What git's own configuration says besides nothing; no system or user file is read. */
const GIT_CONFIG =
  "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n";
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
const TIMEOUT_MS = 10 * 60_000;

/** Settings that no command of ours goes without. Local paths are a transport only where the code host is local. */
export const hardening = (isLocal: boolean): Record<string, string> => ({
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "credential.helper": "",
  "protocol.allow": "never",
  "protocol.https.allow": isLocal ? "never" : "always",
  "protocol.http.allow": isLocal ? "never" : "always",
  "protocol.file.allow": isLocal ? "always" : "never",
  "submodule.recurse": "false",
});

/** Settings as environment (GIT_CONFIG_COUNT, …): they reach git and land in no file and no argument list. */
export function configEnvironment(settings: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(settings);
  return Object.fromEntries([
    ["GIT_CONFIG_COUNT", String(entries.length)],
    ...entries.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value],
    ]),
  ]) as Record<string, string>;
}

/** The header of a repository's credential, sent to its own origin only. */
export function credential(cloneUrl: string, header: string): Record<string, string> {
  if (header === "") return {};
  return {
    [`http.${new URL(cloneUrl).origin}/.extraheader`]: /^[\w-]+:/.test(header) ? header : `Authorization: ${header}`,
  };
}

/** What must not be shown of a repository's credential: as it is sent, and the password that a basic one is made of, which a server may repeat. */
export function secretsOf(header: string): string[] {
  const sent = header.split(" ").at(-1) ?? "";
  const [, password = ""] = /^[^:]*:(.+)$/s.exec(Buffer.from(sent, "base64").toString()) ?? [];
  return /\bbasic /i.test(header) ? [sent, password] : [sent];
}

/** Git on the host, only ever in directories that no agent has written to. */
export class HostGit {
  readonly #home: string;
  readonly #signal: AbortSignal;

  private constructor(home: string, signal: AbortSignal) {
    this.#home = home;
    this.#signal = signal;
  }

  static async at(home: string, signal: AbortSignal): Promise<HostGit> {
    await mkdir(home, { recursive: true, mode: 0o700 });
    const draft = join(home, `gitconfig-${randomUUID()}`);
    await writeFile(draft, GIT_CONFIG);
    await rename(draft, join(home, "gitconfig")); // never seen half written by the git of another execution
    return new HostGit(home, signal);
  }

  /** Standard output. Errors: GitFailed, or the abort reason. */
  run(what: string, args: readonly string[], settings: Readonly<Record<string, string>>): Promise<string> {
    const environment = {
      PATH: "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
      HOME: this.#home,
      LANG: "C",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: join(this.#home, "gitconfig"),
      GIT_TERMINAL_PROMPT: "0",
      ...configEnvironment(settings),
    };
    return new Promise((resolve, reject) => {
      const options = {
        env: environment,
        cwd: this.#home,
        signal: this.#signal,
        timeout: TIMEOUT_MS,
        maxBuffer: OUTPUT_BYTES_MAX,
      };
      execFile("git", [...args], options, (error, stdout, stderr) => {
        if (!error) resolve(stdout);
        else if (this.#signal.aborted) reject(this.#signal.reason as Error);
        else reject(new GitFailed(what, error.code === "ENOENT" ? "git is not installed on this worker" : stderr));
      });
    });
  }
}
