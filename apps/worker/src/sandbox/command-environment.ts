import { dirname } from "node:path";
import { find, INSIDE_PATH } from "./bubblewrap.ts";
import type { SandboxKind } from "./spec.ts";

/** Returns the PATH of commands in a sandbox. */
export const commandPath = (kind: SandboxKind): string => (kind === "bwrap" ? INSIDE_PATH : plainPath());

/** Returns the environment of every command in a sandbox, without the variables of its run. */
export const commandEnvironment = (
  kind: SandboxKind,
  { home, scratch }: { readonly home: string; readonly scratch: string },
): Record<string, string> => ({
  PATH: commandPath(kind),
  HOME: home,
  USER: "agent",
  LOGNAME: "agent",
  SHELL: "/bin/sh",
  LANG: "C.UTF-8",
  TERM: "dumb",
  TMPDIR: scratch,
  // programs must not wait for a terminal
  PAGER: "cat",
  GIT_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
});

const plainPath = (): string =>
  [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    ...(find("/opt/homebrew/bin") ? ["/opt/homebrew/bin"] : []),
    dirname(process.execPath),
  ].join(":");
