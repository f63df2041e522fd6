import type { JsonObject } from "@bufbuild/protobuf";

/** Agent programs of others that this worker can drive. */
export type HarnessName = "claude" | "codex" | "gemini" | "opencode";

/** The conversation that a process of a harness is in. */
export type HarnessSession = {
  readonly id: string;
  /** It knows what was said in it before. */
  readonly isResumed: boolean;
  /** Where the program keeps it, in the sandbox: its own transcript. Absent: nobody knows. */
  readonly file?: string;
};

/** What a harness said, in our words. */
export type HarnessEvent =
  /** Once for each process, before anything else is of interest. */
  | { readonly t: "session"; readonly session: HarnessSession }
  | { readonly t: "message"; readonly text: string }
  | { readonly t: "tool_start"; readonly id: string; readonly name: string; readonly input: JsonObject }
  | { readonly t: "tool_end"; readonly id: string; readonly ok: boolean; readonly output: string }
  /** Nobody's fault yet: the model is asked again, a part of the program did not start. */
  | { readonly t: "warning"; readonly text: string }
  /** What it counted since it last said so, under its own names; what it did not count is absent. */
  | { readonly t: "usage"; readonly counted: JsonObject }
  /** A line that means nothing to us: kept as it came. */
  | { readonly t: "unknown"; readonly line: string }
  | { readonly t: "turn_end"; readonly ok: boolean; readonly message?: string };

/** How a process of a harness is started; paths are those of the sandbox. */
export type StartOptions = {
  readonly program: string;
  /** Where it keeps its sessions: saved with the workspace. */
  readonly stateDir: string;
  /** Of this sandbox alone. */
  readonly home: string;
  readonly cwd: string;
  /** The conversation's, or a new one that the program may take or replace by its own. */
  readonly sessionId: string;
  /** The session was there before, to be gone on with. */
  readonly isResumed: boolean;
  /** Whose model it is, and so the API that the gateway speaks. */
  readonly provider: string;
  /** "" = the harness's own choice. */
  readonly model: string;
  readonly reasoning: string;
  /** What it is told beside its own instructions, and a file with the same text. */
  readonly instructions: string;
  readonly systemFile: string;
  /** Its tools may only look: a plan awaits approval. */
  readonly isReadOnly: boolean;
  /** Origin of the worker's gateway: the model's API, and `/mcp` with the platform's tools. */
  readonly gateway: string;
};

/** A way to a running program. */
export type HarnessLink = {
  /** Writes to it; a program that does not listen any more has ended, which is told elsewhere. */
  readonly send: (text: string) => void;
  readonly emit: (event: HarnessEvent) => void;
};

/** A process of a harness, spoken with by its protocol. A turn begins with `say` and ends with the event `turn_end`. */
export type HarnessConnection = {
  readonly startTurn: (text: string) => void;
  /** Asks it to end the turn that was begun last, which still ends by `turn_end`. */
  readonly interrupt: () => void;
  /** One line of its output; what nobody knows is told as `unknown`. Never throws. */
  readonly receive: (line: string) => void;
};

/** One harness by its own protocol of lines. It touches nothing but the link, so that recorded lines are its test. */
export type HarnessAdapter = {
  readonly type: HarnessName;
  readonly argv: (options: StartOptions) => readonly string[];
  readonly env: (options: StartOptions) => Readonly<Record<string, string>>;
  /** Directories that must be there before it starts. */
  readonly directories?: (options: StartOptions) => readonly string[];
  /** Files that are written before it starts, by their path in the workspace. */
  readonly files?: (options: StartOptions) => Readonly<Record<string, string>>;
  /** The file without which a session cannot be gone on with. Absent: the program itself says whether it can. */
  readonly sessionFile?: (options: Pick<StartOptions, "stateDir" | "sessionId" | "cwd">) => string;
  /** It cannot look without being able to change: while a plan awaits approval, the platform's tools read for it. */
  readonly readsThroughPlatform?: boolean;
  /** An interrupt while its model answers would wipe the whole turn out of its session: the gateway ends the answer instead, and `interrupt` is for its tools. */
  readonly endsByModel?: boolean;
  /** What it knows tools of the platform by, where it cannot have them under our names. */
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
