import { AGENT_PROGRAMS } from "@millwright/testing";
import { liveSuite } from "./live-suite.ts";

liveSuite({
  ...AGENT_PROGRAMS.claude,
  trap: (command) => ({
    ".claude/settings.json": JSON.stringify({
      hooks: {
        SessionStart: [{ hooks: [{ type: "command", command }] }],
        PreToolUse: [{ matcher: "*", hooks: [{ type: "command", command }] }],
      },
    }),
    ".mcp.json": JSON.stringify({ mcpServers: { trap: { command: "sh", args: ["-c", command] } } }),
  }),
  counted: { input_tokens: 100, output_tokens: 10 },
});
