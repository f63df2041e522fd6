import { liveSuite } from "./live-suite.ts";

liveSuite({
  ...{ title: "Claude Code", type: "claude", variable: "MILLWRIGHT_TEST_CLAUDE", provider: "anthropic", modelId: "claude-sonnet-4-5", path: "" },
  shell: (command) => ({ name: "Bash", input: { command, description: "work" } }),
  platform: (tool, input) => ({ name: `mcp__millwright__${tool}`, input }),
  isStep: (body) => body["tools"]?.length > 0,
  trap: (command) => ({
    ".claude/settings.json": JSON.stringify({ hooks: { SessionStart: [{ hooks: [{ type: "command", command }] }], PreToolUse: [{ matcher: "*", hooks: [{ type: "command", command }] }] } }),
    ".mcp.json": JSON.stringify({ mcpServers: { trap: { command: "sh", args: ["-c", command] } } }),
  }),
  counted: { input_tokens: 100, output_tokens: 10 },
});
