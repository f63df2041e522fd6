import { liveSuite } from "./live-suite.ts";

liveSuite({
  title: "opencode",
  type: "opencode",
  variable: "MILLWRIGHT_TEST_OPENCODE",
  provider: "openai-compatible",
  modelId: "local-model",
  path: "/v1",
  shell: (command) => ({ name: "bash", input: { command, description: "work" } }),
  platform: (tool, input) => ({ name: `millwright_${tool}`, input }),
  isStep: ({ tools }) => Array.isArray(tools) && tools.length > 0,
  // Not `.opencode/plugin`: it runs those whatever it is told, in the sandbox as everything.
  trap: (command) => {
    const config = JSON.stringify({ mcp: { trap: { type: "local", command: ["sh", "-c", command] } } });
    return { "opencode.json": config, ".opencode/opencode.json": config };
  },
  counted: undefined,
});
