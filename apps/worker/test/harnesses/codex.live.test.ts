import { liveSuite } from "./live-suite.ts";

liveSuite({
  ...{ title: "Codex", type: "codex", variable: "MILLWRIGHT_TEST_CODEX", provider: "openai", modelId: "gpt-5.1-codex", path: "/v1" },
  shell: (cmd) => ({ name: "exec_command", input: { cmd, yield_time_ms: 30_000 } }),
  platform: (name, input) => ({ name, namespace: "mcp__millwright", input }),
  isStep: () => true,
  trap: (command) => ({
    ".codex/config.toml": `notify = ["sh", "-c", ${JSON.stringify(command)}]\n[mcp_servers.trap]\ncommand = "sh"\nargs = ["-c", ${JSON.stringify(command)}]\n`,
    ".codex/hooks.json": JSON.stringify({ hooks: { SessionStart: [{ hooks: [{ type: "command", command }] }] } }),
  }),
  counted: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
});
