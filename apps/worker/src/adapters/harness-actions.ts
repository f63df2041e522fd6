import type { ActionCategory } from "./harness-adapter.ts";

type Action = readonly [name: string, category: ActionCategory];

const named = (action: Action, ...tools: readonly string[]): Record<string, Action> =>
  Object.fromEntries(tools.map((tool) => [tool, action]));

/** The tools of harnesses and the public actions that they represent. */
const ACTIONS: Readonly<Record<string, Action>> = {
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
  // Gemini CLI and opencode, and the kinds of the Agent Client Protocol for agents that report no tool name.
  ...named(["run_command", "command"], "run_shell_command", "bash", "execute"),
  ...named(["read_files", "files"], "read_file", "read_many_files", "read"),
  ...named(["list_files", "files"], "list_directory", "list"),
  ...named(["edit_files", "files"], "write_file", "replace", "write", "edit", "multiedit", "patch", "delete", "move"),
  ...named(["grep", "search"], "grep_search", "grep", "search"),
  ...named(["file_glob", "search"], "glob"),
  ...named(["web_search", "search"], "google_web_search", "websearch"),
  ...named(["fetch_url", "search"], "web_fetch", "webfetch", "fetch"),
  ...named(["update_plan", "documents"], "write_todos", "todowrite", "plan_update"),
};

export const actionOf = (tool: string): { readonly name: string; readonly category: ActionCategory } => {
  const [name, category] = (Object.hasOwn(ACTIONS, tool) && ACTIONS[tool]) || [tool, "integration" as const];
  return { name, category };
};
