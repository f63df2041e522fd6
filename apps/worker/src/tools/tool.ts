import type { JsonObject } from "@bufbuild/protobuf";
import type { z } from "zod";
import type { PlatformClient } from "../context/platform-client.ts";
import type { WorkingCopy } from "../git/repository.ts";
import type { BackgroundCommands } from "./background.ts";
import type { RunFailure } from "../model/model-provider.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Fields } from "../model/event-fields.ts";

/** The agent's files and the shell's directory. */
export type Workspace = {
  readonly sandbox: Sandbox;
  readonly copies: readonly WorkingCopy[];
  /** The directory where relative paths and the first command start: the only repository, or the workspace itself. */
  readonly base: string;
  /** The directory where the next command starts. */
  cwd: string;
};

/** A skill that an agent can read (SKILL.md). */
export type SkillText = {
  readonly name: string;
  readonly description: string;
  readonly body: string;
  /** The source of the skill. */ readonly path: string;
};

/** The skills of an execution: those of its agent's definition and of its repositories. */
export type SkillCatalog = { all(): Promise<readonly SkillText[]> };

/** The dependencies of a tool call. */
export type ToolContext = {
  readonly callId: string;
  readonly workspace: Workspace;
  readonly platform: PlatformClient;
  readonly run: { readonly runUid: string; readonly factoryUid: string; readonly spawnableAgents: readonly string[] };
  readonly skills: SkillCatalog;
  readonly background: BackgroundCommands;
  /** Pushes a commit to the work branch from a clean sandbox, while the outbound gate is open. */
  readonly push: (copy: WorkingCopy, sha: string) => Promise<void>;
  /** Returns whether a resumed script repeats the call because its change was lost with a workspace. */
  readonly isRepeated: (callId: string) => boolean;
  /** Adds an event to the run. */
  readonly record: (kind: string, payload: Fields) => void;
  /** Aborted by an interrupt, a cancel or the loss of the lease. */
  readonly signal: AbortSignal;
};

/** How a turn ends. */
export type TurnEnd =
  | { readonly kind: "done"; readonly message?: string }
  | { readonly kind: "failed"; readonly failure: RunFailure }
  | { readonly kind: "blocked"; readonly message: string }
  | { readonly kind: "waiting"; readonly policy: "all" | "any" }
  | { readonly kind: "interrupted" };

export type ToolResult = {
  /** The result for the agent and for users; at most 64 KB. */
  readonly output: JsonObject;
  /** Set if the call ends the turn. */
  readonly end?: TurnEnd;
};

/** A tool of an agent. */
export type Tool<I = unknown> = {
  /** The name that models use. */
  readonly name: string;
  /** The name and category of the public action. */
  readonly action: string;
  readonly category: "command" | "files" | "search" | "documents" | "computer" | "integration" | "review" | "skill";
  readonly description: string;
  /**
   * Whether it changes neither the workspace nor anything outside. Such a tool is allowed while a plan awaits approval.
   */
  readonly isReadOnly: boolean;
  /**
   * Set for read-only tools that may run concurrently with other such calls of the same step and that never end the
   * turn.
   */
  readonly isParallel?: boolean;
  /**
   * What the tool changes in the workspace: nothing; files, determined only by the call's input, so that the call can
   * be repeated in a lost workspace; or anything, so that the workspace is saved afterwards.
   */
  readonly changes: "nothing" | "files" | "anything";
  /**
   * Whether a script repeats the call if the loss of its worker interrupted it (the default). False: a repetition could
   * duplicate external effects.
   */
  readonly isRepeatable?: boolean;
  readonly input: z.ZodType<I>;
  /** The input schema for models, if it contains more than `input`. */
  readonly inputSchema?: JsonObject;
  /** Returns the part of the input that users see. */
  readonly shown: (input: I) => Fields;
  readonly run: (input: I, context: ToolContext) => Promise<ToolResult>;
};

/** Preserves a tool's own input type in its definition and erases it, so that tools fit in one list. */
export const defineTool = <I>(tool: Tool<I>): Tool => tool as unknown as Tool;
