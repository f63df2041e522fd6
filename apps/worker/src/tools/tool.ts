import type { JsonObject } from "@bufbuild/protobuf";
import type { z } from "zod";
import type { PlatformClient } from "../executions/execution-context.ts";
import type { WorkingCopy } from "../git/repository.ts";
import type { BackgroundCommands } from "./background.ts";
import type { RunFailure } from "../model/model-provider.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** The agent's files, and the shell's directory. */
export type Workspace = {
  readonly sandbox: Sandbox;
  readonly copies: readonly WorkingCopy[];
  /** Where relative paths and the first command start: the only repository, or the workspace itself. */
  readonly base: string;
  /** Where the next command starts. */
  cwd: string;
};

/** A procedure that an agent can read (SKILL.md). */
export type SkillText = {
  readonly name: string;
  readonly description: string;
  readonly body: string;
  /** Where it comes from. */ readonly path: string;
};

/** The skills of an execution: of its agent's definition, and of its repositories. */
export type SkillCatalog = { all(): Promise<readonly SkillText[]> };

/** What a tool may use. */
export type ToolContext = {
  readonly callId: string;
  readonly workspace: Workspace;
  readonly platform: PlatformClient;
  readonly run: { readonly runUid: string; readonly factoryUid: string; readonly spawnableAgents: readonly string[] };
  readonly skills: SkillCatalog;
  readonly background: BackgroundCommands;
  /** Pushes a commit to the work branch from a clean sandbox, while the outbound gate is open. */
  readonly push: (copy: WorkingCopy, sha: string) => Promise<void>;
  /** Returns whether a resumed script repeats the call, because its change was lost with a workspace. */
  readonly isRepeated: (callId: string) => boolean;
  /** Adds an event to the run. */
  readonly record: (kind: string, payload: JsonObject) => void;
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
  /** What the agent gets, and what people see; at most 64 KB. */
  readonly output: JsonObject;
  /** The call ends the turn. */
  readonly end?: TurnEnd;
};

/** A tool failed; the text is for the agent, and `output` is what can be shown. */
export class ToolFailure extends Error {
  readonly output: JsonObject;
  constructor(message: string, output: JsonObject = {}) {
    super(message);
    this.name = "ToolFailure";
    this.output = output;
  }
}

/** One thing an agent can do. */
export type Tool<I = unknown> = {
  /** As a model calls it. */
  readonly name: string;
  /** Name and category of the public action (fields-runs §6.8). */
  readonly action: string;
  readonly category: "command" | "files" | "search" | "documents" | "computer" | "integration" | "review" | "skill";
  readonly description: string;
  /** Changes neither the workspace nor anything outside: allowed while a plan awaits approval. */
  readonly isReadOnly: boolean;
  /** Read-only: may run concurrently with other such calls of the same step, and ends nothing. */
  readonly isParallel?: boolean;
  /**
   * What it changes in the workspace: nothing; files, determined by the call's input alone, so that it can be repeated
   * in a lost workspace; or anything, so that the workspace is saved afterwards.
   */
  readonly changes: "nothing" | "files" | "anything";
  /**
   * Absent: a script repeats it if the loss of its worker interrupted it. False: outside effects could be doubled by
   * that.
   */
  readonly isRepeatable?: boolean;
  readonly input: z.ZodType<I>;
  /** What a model is told of the input, where `input` says less than is known. */
  readonly inputSchema?: JsonObject;
  /** The part of the input that people see. */
  readonly shown: (input: I) => JsonObject;
  readonly run: (input: I, context: ToolContext) => Promise<ToolResult>;
};

/** Keeps a tool's own input type while it is written, and hides it where tools are a list. */
export const defineTool = <I>(tool: Tool<I>): Tool => tool as unknown as Tool;
