import { randomUUID } from "node:crypto";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { GATEWAY_PORT } from "../sandbox/spec.ts";
import type { ToolContext } from "../tools/tool.ts";
import { readRules } from "../workspace/read-rules.ts";
import type { HarnessAdapter, StartOptions } from "./harness-adapter.ts";
import { harnessInstructions } from "./harness-prompt.ts";
import { sessionOf } from "./harness-record.ts";

const INSTRUCTIONS_FILE = "harness-instructions.md";

export type PrepareHarnessDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly harness: { readonly adapter: HarnessAdapter; readonly program: string };
  readonly context: Pick<ToolContext, "workspace">;
  readonly notices: readonly string[];
};

/**
 * Writes the instructions, settings and directories of a harness into its sandbox. Returns how to start it: with its
 * earlier session, if the session's file exists.
 */
export async function prepareHarness(deps: PrepareHarnessDeps, isReadOnly: boolean): Promise<StartOptions> {
  const { adapter } = deps.harness;
  const { sandbox } = deps.context.workspace;
  const options = await startOptions(deps, isReadOnly);
  const directories = adapter.directories?.(options) ?? [];
  if (directories.length > 0) await sandbox.exec(["mkdir", "-p", ...directories]);
  await sandbox.writeFile(sandbox.home, INSTRUCTIONS_FILE, Buffer.from(options.instructions));
  for (const [path, text] of Object.entries(adapter.files?.(options) ?? {}))
    await sandbox.writeFile(sandbox.workspace, path, Buffer.from(text));
  return options;
}

async function startOptions(
  { ctx, conversation, harness, context, notices }: PrepareHarnessDeps,
  isReadOnly: boolean,
): Promise<StartOptions> {
  const { adapter, program } = harness;
  const { sandbox, base: cwd } = context.workspace;
  const stateDir = `${sandbox.workspace}/.harness/${adapter.type}`;
  const known = sessionOf(conversation, adapter.type);
  const sessionId = known ?? randomUUID();
  const file = adapter.sessionFile?.({ stateDir, sessionId, cwd });
  const isResumed =
    known !== undefined && (file === undefined || (await sandbox.stat(sandbox.workspace, file)).type === "file");
  const { provider, modelId: model, reasoningLevel: reasoning } = ctx.assignment;
  const rules = await readRules(context.workspace);
  const instructions = harnessInstructions(ctx.assignment, { isReadOnly, notices, rules });
  return {
    program,
    stateDir,
    home: sandbox.home,
    cwd,
    sessionId,
    isResumed,
    provider,
    model,
    reasoning,
    instructions,
    systemFile: `${sandbox.home}/${INSTRUCTIONS_FILE}`,
    isReadOnly,
    gateway: `http://127.0.0.1:${GATEWAY_PORT}`,
  };
}
