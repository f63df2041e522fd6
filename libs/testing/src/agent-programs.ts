import type { FakeHarness } from "./fake-harness.ts";
import type { ModelAnswer, ModelRequest } from "./model-server.ts";

export type ModelCall = NonNullable<Extract<ModelAnswer, { calls?: unknown }>["calls"]>[number];

/** The differences between third-party agent programs when a test scripts their model. */
export type AgentProgram = {
  readonly title: string;
  readonly type: FakeHarness;
  /** Environment variable with the path of the real program; unset: its tests are skipped. */
  readonly variable: string;
  readonly provider: string;
  readonly modelId: string;
  /** The suffix of the model server's address. */
  readonly path: string;
  /** The call of its own shell, and of one of the platform's tools. */
  readonly shell: (command: string) => ModelCall;
  readonly platform: (tool: string, input: object) => ModelCall;
  /** Returns whether a request is for a step of the agent; others are for titles and similar. */
  readonly isStep: (body: ModelRequest["body"]) => boolean;
};

const hasTools: AgentProgram["isStep"] = ({ tools }) => Array.isArray(tools) && tools.length > 0;
const described =
  (name: string) =>
  (command: string): ModelCall => ({ name, input: { command, description: "work" } });

export const AGENT_PROGRAMS: Readonly<Record<FakeHarness, AgentProgram>> = {
  claude: {
    title: "Claude Code",
    type: "claude",
    variable: "MILLWRIGHT_TEST_CLAUDE",
    provider: "anthropic",
    modelId: "claude-sonnet-4-5",
    path: "",
    shell: described("Bash"),
    platform: (tool, input) => ({ name: `mcp__millwright__${tool}`, input }),
    isStep: hasTools,
  },
  codex: {
    title: "Codex",
    type: "codex",
    variable: "MILLWRIGHT_TEST_CODEX",
    provider: "openai",
    modelId: "gpt-5.1-codex",
    path: "/v1",
    shell: (cmd) => ({ name: "exec_command", input: { cmd, yield_time_ms: 30_000 } }),
    platform: (name, input) => ({ name, namespace: "mcp__millwright", input }),
    isStep: () => true,
  },
  gemini: {
    title: "Gemini CLI",
    type: "gemini",
    variable: "MILLWRIGHT_TEST_GEMINI",
    provider: "google",
    modelId: "gemini-2.5-pro",
    path: "/v1beta",
    shell: described("run_shell_command"),
    platform: (tool, input) => ({ name: `mcp_millwright_${tool === "ask_user" ? "ask_people" : tool}`, input }),
    isStep: hasTools,
  },
  opencode: {
    title: "opencode",
    type: "opencode",
    variable: "MILLWRIGHT_TEST_OPENCODE",
    provider: "openai-compatible",
    modelId: "local-model",
    path: "/v1",
    shell: described("bash"),
    platform: (tool, input) => ({ name: `millwright_${tool}`, input }),
    isStep: hasTools,
  },
};
