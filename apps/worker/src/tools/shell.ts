import { z } from "zod";
import { SandboxRefusal } from "../sandbox/sandbox-errors.ts";
import type { ExecValue } from "../sandbox/init/protocol.ts";
import { defineTool, type ToolContext } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

const TIMEOUT_SECONDS = 120;
/** Less than the 30 minutes after which the platform ends an execution without events: output is reported at the end. */
const TIMEOUT_SECONDS_MAX = 1_500;

/** Runs a command. Any exit code is a result; a timeout is a failure. */
export const shell = defineTool({
  name: "shell",
  action: "run_command",
  category: "command",
  description: `Runs a shell command in the workspace and returns its exit code and output. The working directory is retained between calls. It is ended after ${TIMEOUT_SECONDS} seconds unless timeout_seconds sets another limit, of at most ${TIMEOUT_SECONDS_MAX}. With background: true it is left running (a server, a watcher, a longer build) and its id is returned, for shell_output and shell_kill.`,
  isReadOnly: false,
  changes: "anything",
  input: z.object({
    command: z.string().min(1),
    timeout_seconds: z.number().int().positive().max(TIMEOUT_SECONDS_MAX).optional(),
    background: z.boolean().optional(),
  }),
  shown: ({ command, background = false }) => ({ command, background: background || undefined }),
  async run({ command, timeout_seconds: seconds = TIMEOUT_SECONDS, background = false }, context) {
    const { workspace } = context;
    if (background)
      return { output: { id: context.background.begin(workspace.sandbox, command, workspace.cwd), running: true } };
    const run = await runCommand(command, seconds * 1_000, context);
    const output = { exit_code: run.exitCode, output: run.output, truncated: run.truncated, cwd: run.cwd };
    if (run.stopped) throw new ToolFailure("The command was interrupted.", output);
    if (run.timedOut) throw new ToolFailure(`The command took longer than ${seconds} s and was ended.`, output);
    if (run.exitCode === null) throw new ToolFailure(`The command was ended by ${run.signal ?? "a signal"}.`, output);
    return { output };
  },
});

async function runCommand(command: string, timeoutMs: number, { workspace, signal }: ToolContext): Promise<ExecValue> {
  const run = (cwd: string) => workspace.sandbox.exec(command, { cwd, timeoutMs, signal });
  const ended = await run(workspace.cwd).catch((error: unknown) => {
    // the previous command removed the directory
    if (error instanceof SandboxRefusal && error.code === "no_such_directory") return run(workspace.base);
    throw error;
  });
  workspace.cwd = ended.cwd;
  return ended;
}
