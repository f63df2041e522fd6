import { z } from "zod";
import { defineTool } from "./tool.ts";

const WAIT_SECONDS_MAX = 600;
const id = z.string().min(1);

export const shellOutput = defineTool({
  name: "shell_output",
  action: "read_command_output",
  category: "command",
  description:
    "Reads what a background command (shell with background: true) has written since the last call, and whether it still runs. Waits up to wait_seconds for its end.",
  isReadOnly: true,
  isParallel: true,
  changes: "nothing",
  input: z.object({ id, wait_seconds: z.number().int().positive().max(WAIT_SECONDS_MAX).optional() }),
  shown: ({ id: command }) => ({ id: command }),
  run: async ({ id: command, wait_seconds: seconds = 0 }, { background, signal }) => ({
    output: await background.read(command, seconds * 1_000, signal),
  }),
});

export const shellKill = defineTool({
  name: "shell_kill",
  action: "stop_command",
  category: "command",
  description: "Ends a background command and everything it has started, and returns what it had written.",
  isReadOnly: false,
  changes: "anything",
  input: z.object({ id }),
  shown: ({ id: command }) => ({ id: command }),
  run: async ({ id: command }, { background, signal }) => ({ output: await background.stop(command, signal) }),
});
