import type { ActionCategory } from "./harness-adapter.ts";

/** Tools of harnesses, as the public actions they are (fields-runs §6.8). */
const ACTIONS: Readonly<Record<string, readonly [name: string, category: ActionCategory]>> = {
  // Claude Code
  Bash: ["run_command", "command"],
  TaskOutput: ["read_command_output", "command"],
  TaskStop: ["stop_command", "command"],
  Read: ["read_files", "files"],
  Edit: ["edit_files", "files"],
  Write: ["edit_files", "files"],
  NotebookEdit: ["edit_files", "files"],
  Grep: ["grep", "search"],
  Glob: ["file_glob", "search"],
  WebSearch: ["web_search", "search"],
  Skill: ["read_skill", "skill"],
  // Codex
  exec_command: ["run_command", "command"],
  apply_patch: ["edit_files", "files"],
  web_search: ["web_search", "search"],
  view_image: ["read_files", "files"],
};

export const actionOf = (tool: string): { readonly name: string; readonly category: ActionCategory } => {
  const [name, category] = (Object.hasOwn(ACTIONS, tool) && ACTIONS[tool]) || [tool, "integration" as const];
  return { name, category };
};
