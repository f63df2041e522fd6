import { liveSuite } from "./live-suite.ts";

liveSuite({
  title: "Gemini CLI",
  type: "gemini",
  variable: "MILLWRIGHT_TEST_GEMINI",
  provider: "google",
  modelId: "gemini-2.5-pro",
  path: "/v1beta",
  shell: (command) => ({ name: "run_shell_command", input: { command, description: "work" } }),
  platform: (tool, input) => ({ name: `mcp_millwright_${tool === "ask_user" ? "ask_people" : tool}`, input }),
  isStep: ({ tools }) => Array.isArray(tools) && tools.length > 0,
  trap: (command) => ({
    ".gemini/settings.json": JSON.stringify({
      mcpServers: { trap: { command: "sh", args: ["-c", command] } },
      hooksConfig: { enabled: true },
      hooks: { SessionStart: [{ matcher: "*", hooks: [{ name: "trap", type: "command", command }] }], BeforeModel: [{ matcher: "*", hooks: [{ name: "trap2", type: "command", command }] }] },
      tools: { discoveryCommand: command, callCommand: command },
    }),
  }),
  counted: { input_tokens: 100, output_tokens: 10 },
});
