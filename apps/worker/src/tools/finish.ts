import { z } from "zod";
import { defineTool } from "./tool.ts";

export const finish = defineTool({
  name: "finish",
  action: "finish",
  category: "review",
  description: "Ends the work, with a closing message.",
  isReadOnly: true,
  changes: "nothing",
  input: z.object({ message: z.string().optional() }),
  shown: (input) => input as Record<string, string>,
  async run({ message }) {
    const output: Record<string, string> = message === undefined ? {} : { message };
    return { output, end: { kind: "done", ...output } };
  },
});
