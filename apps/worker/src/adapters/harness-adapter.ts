import type { JsonObject } from "@bufbuild/protobuf";

/** The third-party agent programs that this worker can run. */
export type HarnessName = "claude" | "codex" | "gemini" | "opencode";

/** The session of a harness process. */
export type HarnessSession = {
  readonly id: string;
  /** Whether it contains the earlier conversation. */
  readonly isResumed: boolean;
  /** The program's own transcript file in the sandbox; absent: unknown. */
  readonly file?: string;
};

/** A harness event in the platform's terms. */
export type HarnessEvent =
  /** Emitted once per process, before other events. */
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

/** The start options of a harness process. Paths are those of the sandbox. */
export type StartOptions = {
  readonly program: string;
  /** The directory of its sessions, which is saved with the workspace. */
  readonly stateDir: string;
  /** The home directory; it exists only in this sandbox. */
  readonly home: string;
  readonly cwd: string;
  /** The conversation's id, or a new one that the program may replace. */
  readonly sessionId: string;
  /** Whether the session exists and is to be resumed. */
  readonly isResumed: boolean;
  /** The model's provider, which determines the API of the gateway. */
  readonly provider: string;
  /** Empty: the harness's default. */
  readonly model: string;
  readonly reasoning: string;
  /** Additional instructions, and the path of a file with the same text. */
  readonly instructions: string;
  readonly systemFile: string;
  /** Whether its tools must be read-only because a plan awaits approval. */
  readonly isReadOnly: boolean;
  /** The origin of the worker's gateway, which serves the model's API and, at `/mcp`, the platform's tools. */
  readonly gateway: string;
};

/** The operations of a connection on its running program. */
export type HarnessLink = {
  /** Writes to the program. Errors are ignored, because the end of the program is reported separately. */
  readonly send: (text: string) => void;
  readonly emit: (event: HarnessEvent) => void;
};

/** A connection to a harness process. A turn begins with `startTurn` and ends with the event `turn_end`. */
export type HarnessConnection = {
  readonly startTurn: (text: string) => void;
  /** Requests the end of the current turn, which still ends with `turn_end`. */
  readonly interrupt: () => void;
  /** Handles one line of the program's output. Unknown lines are emitted as `unknown`. Never throws. */
  readonly receive: (line: string) => void;
};

/**
 * The adapter of one harness protocol. It performs no I/O except through the link, so that it can be tested with
 * recorded lines.
 */
export type HarnessAdapter = {
  readonly type: HarnessName;
  readonly argv: (options: StartOptions) => readonly string[];
  readonly env: (options: StartOptions) => Readonly<Record<string, string>>;
  /** Directories that must exist before the program starts. */
  readonly directories?: (options: StartOptions) => readonly string[];
  /** Files that are written before the program starts, by their path in the workspace. */
  readonly files?: (options: StartOptions) => Readonly<Record<string, string>>;
  /** The file that is required to resume a session. Absent: the program itself reports whether it can. */
  readonly sessionFile?: (options: Pick<StartOptions, "stateDir" | "sessionId" | "cwd">) => string;
  /** Set if the harness has no read-only mode. While a plan awaits approval, it reads through the platform's tools. */
  readonly readsThroughPlatform?: boolean;
  /**
   * Set if an interrupt during a model response would delete the whole turn from the session. The gateway then ends the
   * response instead, and `interrupt` applies only to tools.
   */
  readonly endsByModel?: boolean;
  /** Alternative names of platform tools whose own names the harness cannot use. */
  readonly toolNames?: Readonly<Record<string, string>>;
  readonly connect: (options: StartOptions, link: HarnessLink) => HarnessConnection;
};

/** The category of a public action. */
export type ActionCategory =
  | "command"
  | "files"
  | "search"
  | "documents"
  | "computer"
  | "integration"
  | "review"
  | "skill";
