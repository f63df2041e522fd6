import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A git command of the platform failed. The message is git's, without credentials. */
export class GitFailed extends Error {
  /** The reason code of a setup that fails with this error. */
  readonly reason: string;
  constructor(what: string, detail: string, reason = "workspace_setup") {
    super(`${what}: ${detail.trim() || "git gave no reason"}`);
    this.name = "GitFailed";
    this.reason = reason;
  }
}

/** The complete global git configuration; no system or user file is read. */
const GIT_CONFIG =
  "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n";
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
const TIMEOUT_MS = 10 * 60_000;

/**
 * Returns the settings of every git command of the platform. The local path transport is allowed only if the code host
 * is local.
 */
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

/**
 * Returns git settings as environment variables (GIT_CONFIG_COUNT, …), so that they appear neither in a file nor in an
 * argument list.
 */
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

/**
 * Returns the setting for a repository's authorization header. Git sends the header only to the repository's own
 * origin.
 */
export function credential(cloneUrl: string, header: string): Record<string, string> {
  if (header === "") return {};
  return {
    [`http.${new URL(cloneUrl).origin}/.extraheader`]: /^[\w-]+:/.test(header) ? header : `Authorization: ${header}`,
  };
}

/**
 * Returns the secrets of an authorization header: the credential as sent and, for basic authentication, its password,
 * which a server may echo.
 */
export function secretsOf(header: string): string[] {
  const sent = header.split(" ").at(-1) ?? "";
  const [, password = ""] = /^[^:]*:(.+)$/s.exec(Buffer.from(sent, "base64").toString()) ?? [];
  return /\bbasic /i.test(header) ? [sent, password] : [sent];
}

/** Runs git on the host, only in directories that no agent has written to. */
export class HostGit {
  readonly #home: string;
  readonly #signal: AbortSignal;
  readonly #caFile: string | undefined;

  private constructor(home: string, signal: AbortSignal, caFile: string | undefined) {
    this.#home = home;
    this.#signal = signal;
    this.#caFile = caFile;
  }

  /** `caFile`: a PEM file with the certificate authorities for HTTPS, instead of the machine's. */
  static async at(home: string, signal: AbortSignal, caFile?: string): Promise<HostGit> {
    await mkdir(home, { recursive: true, mode: 0o700 });
    const draft = join(home, `gitconfig-${randomUUID()}`);
    await writeFile(draft, GIT_CONFIG);
    await rename(draft, join(home, "gitconfig")); // so that git of another execution never reads a partial file
    return new HostGit(home, signal, caFile);
  }

  /** Runs git and returns its standard output. Throws `GitFailed` or the abort reason. */
  run(what: string, args: readonly string[], settings: Readonly<Record<string, string>>): Promise<string> {
    const environment = {
      PATH: "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
      HOME: this.#home,
      LANG: "C",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: join(this.#home, "gitconfig"),
      GIT_TERMINAL_PROMPT: "0",
      ...(this.#caFile && { GIT_SSL_CAINFO: this.#caFile }),
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
