import { z } from "zod";
import { defineTool } from "./tool.ts";

export const askUser = defineTool({
  name: "ask_user",
  action: "ask_user",
  category: "review",
  description: "Asks a person, and blocks the run until there is an answer.",
  isReadOnly: true,
  changes: "nothing",
  input: z.object({ question: z.string().min(1) }),
  shown: ({ question }) => ({ question }),
  run: async ({ question }) => ({ output: { question }, end: { kind: "blocked", message: question } }),
});
