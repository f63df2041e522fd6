import { configEnvironment, hardening } from "./host-git.ts";
import { AGENT_IDENTITY } from "./sandbox-git.ts";

/**
 * The environment of git in platform scripts: it disables the repository's hooks and file system monitor, and user and
 * system configuration.
 */
export const SHELL_GIT: Readonly<Record<string, string>> = {
  ...AGENT_IDENTITY,
  ...configEnvironment(hardening(true)),
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_TERMINAL_PROMPT: "0",
};
