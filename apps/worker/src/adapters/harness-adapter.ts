import type { JsonObject } from "@bufbuild/protobuf";

/** Third-party agent programs that this worker can run. */
export type HarnessName = "claude" | "codex" | "gemini" | "opencode";

/** The session of a harness process. */
export type HarnessSession = {
  readonly id: string;
  /** It contains the earlier conversation. */
  readonly isResumed: boolean;
  /** The program's own transcript file in the sandbox. Absent: unknown. */
  readonly file?: string;
};

/** A harness event in the platform's terms. */
export type HarnessEvent =
  /** Once per process, before other events. */
  | { readonly t: "session"; readonly session: HarnessSession }
  | { readonly t: "message"; readonly text: string }
  | { readonly t: "tool_start"; readonly id: string; readonly name: string; readonly input: JsonObject }
  | { readonly t: "tool_end"; readonly id: string; readonly ok: boolean; readonly output: string }
  /** A retry of the model call, or a component that did not start. */
  | { readonly t: "warning"; readonly text: string }
  /** Counters since the last report, under the program's names; uncounted values are absent. */
  | { readonly t: "usage"; readonly counted: JsonObject }
  /** A line in an unknown format, stored unchanged. */
  | { readonly t: "unknown"; readonly line: string }
  | { readonly t: "turn_end"; readonly ok: boolean; readonly message?: string };

/** Start options of a harness process; paths are those of the sandbox. */
export type StartOptions = {
  readonly program: string;
  /** Directory of its sessions: saved with the workspace. */
  readonly stateDir: string;
  /** Of this sandbox alone. */
  readonly home: string;
  readonly cwd: string;
  /** The conversation's id, or a new one that the program may replace. */
  readonly sessionId: string;
  /** The session exists and is to be resumed. */
  readonly isResumed: boolean;
  /** The model's provider, and so the API of the gateway. */
  readonly provider: string;
  /** "" = the harness's own choice. */
  readonly model: string;
  readonly reasoning: string;
  /** Additional instructions, and a file with the same text. */
  readonly instructions: string;
  readonly systemFile: string;
  /** Its tools are read-only: a plan awaits approval. */
  readonly isReadOnly: boolean;
  /** Origin of the worker's gateway: the model's API, and `/mcp` with the platform's tools. */
  readonly gateway: string;
};

/** The connection to a running program. */
export type HarnessLink = {
  /** Writes to it; errors are ignored, since the end of the program is reported elsewhere. */
  readonly send: (text: string) => void;
  readonly emit: (event: HarnessEvent) => void;
};

/** A connection to a harness process. A turn begins with `startTurn` and ends with the event `turn_end`. */
export type HarnessConnection = {
  readonly startTurn: (text: string) => void;
  /** Asks it to end the current turn, which still ends with `turn_end`. */
  readonly interrupt: () => void;
  /** Handles one line of its output; unknown lines are emitted as `unknown`. Never throws. */
  readonly receive: (line: string) => void;
};

/**
 * The adapter of one harness protocol. It performs no I/O except through the link, so that recorded lines can test it.
 */
export type HarnessAdapter = {
  readonly type: HarnessName;
  readonly argv: (options: StartOptions) => readonly string[];
  readonly env: (options: StartOptions) => Readonly<Record<string, string>>;
  /** Directories that must exist before it starts. */
  readonly directories?: (options: StartOptions) => readonly string[];
  /** Files that are written before it starts, by their path in the workspace. */
  readonly files?: (options: StartOptions) => Readonly<Record<string, string>>;
  /** The file that a session needs to be resumed. Absent: the program itself reports whether it can. */
  readonly sessionFile?: (options: Pick<StartOptions, "stateDir" | "sessionId" | "cwd">) => string;
  /** It has no read-only mode: while a plan awaits approval, it reads through the platform's tools. */
  readonly readsThroughPlatform?: boolean;
  /**
   * An interrupt during a model response would delete the whole turn from its session: the gateway ends the response
   * instead, and `interrupt` applies to its tools only.
   */
  readonly endsByModel?: boolean;
  /** Alternative names of platform tools, where it cannot use ours. */
  readonly toolNames?: Readonly<Record<string, string>>;
  readonly connect: (options: StartOptions, link: HarnessLink) => HarnessConnection;
};

/** Category of a public action by the tool of a harness. */
export type ActionCategory =
  | "command"
  | "files"
  | "search"
  | "documents"
  | "computer"
  | "integration"
  | "review"
  | "skill";
