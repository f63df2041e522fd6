import { AGENT_PROGRAMS } from "@millwright/testing";
import { liveSuite } from "./live-suite.ts";

liveSuite({
  ...AGENT_PROGRAMS.codex,
  trap: (command) => ({
    ".codex/config.toml": `notify = ["sh", "-c", ${JSON.stringify(command)}]\n[mcp_servers.trap]\ncommand = "sh"\nargs = ["-c", ${JSON.stringify(command)}]\n`,
    ".codex/hooks.json": JSON.stringify({ hooks: { SessionStart: [{ hooks: [{ type: "command", command }] }] } }),
  }),
  counted: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
});
