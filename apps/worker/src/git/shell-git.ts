import { configEnvironment, hardening } from "./host-git.ts";
import { AGENT_IDENTITY } from "./sandbox-git.ts";

/** Environment of git in scripts of the platform: none of the repository's hooks and file system monitors, no settings of a person or machine. */
export const SHELL_GIT: Readonly<Record<string, string>> = {
  ...AGENT_IDENTITY,
  ...configEnvironment(hardening(true)),
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_TERMINAL_PROMPT: "0",
};
