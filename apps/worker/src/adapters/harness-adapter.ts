import type { JsonObject } from "@bufbuild/protobuf";

/** Agent programs of others that this worker can drive. */
export type HarnessName = "claude";

/** What a harness said, in our words. */
export type HarnessEvent =
  | { readonly t: "message"; readonly text: string }
  | { readonly t: "tool_start"; readonly id: string; readonly name: string; readonly input: JsonObject }
  | { readonly t: "tool_end"; readonly id: string; readonly ok: boolean; readonly output: string }
  | { readonly t: "retry"; readonly text: string }
  /** `usage`: as the harness counts it, for this process so far. */
  | { readonly t: "turn_end"; readonly ok: boolean; readonly message?: string; readonly usage?: JsonObject };

/** How a process of a harness is started; paths are those of the sandbox. */
export type StartOptions = {
  readonly program: string;
  /** Where it keeps its sessions: saved with the workspace. */
  readonly stateDir: string;
  readonly sessionId: string;
  /** The session is there, to be gone on with. */
  readonly isResumed: boolean;
  /** "" = the harness's own choice. */
  readonly model: string;
  readonly reasoning: string;
  /** A file with what it is told beside its own instructions. */
  readonly systemFile: string;
  /** Its tools may only look: a plan awaits approval. */
  readonly isLooking: boolean;
  /** Origin of the worker's gateway: the model's API, and `/mcp` with the platform's tools. */
  readonly gateway: string;
};

/** One harness by its own protocol of lines: pure, so that recorded lines are its test. */
export type HarnessAdapter = {
  readonly type: HarnessName;
  /** Provider whose API the gateway speaks for it. */
  readonly provider: string;
  readonly argv: (options: StartOptions) => readonly string[];
  readonly env: (options: StartOptions) => Readonly<Record<string, string>>;
  /** The file without which a session cannot be gone on with. */
  readonly sessionFile: (options: Pick<StartOptions, "stateDir" | "sessionId"> & { readonly cwd: string }) => string;
  readonly say: (text: string) => string;
  readonly interrupt: (requestId: string) => string;
  /** What a line means; nothing for lines that nobody knows. */
  readonly read: (line: string) => readonly HarnessEvent[];
};

/** Category of a public action by the tool of a harness. */
export type ActionCategory = "command" | "files" | "search" | "documents" | "computer" | "integration" | "review" | "skill";
