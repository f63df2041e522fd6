import { z } from "zod";
import { defineTool } from "./tool.ts";

export const wait = defineTool({
  name: "wait",
  action: "wait_for_runs",
  category: "integration",
  description:
    "Parks this run until all its child runs have ended, or any one of them; then their results are delivered. The run occupies no worker while it waits.",
  isReadOnly: false,
  changes: "nothing",
  input: z.object({ policy: z.enum(["all", "any"]) }),
  shown: ({ policy }) => ({ policy }),
  run: async ({ policy }) => ({ output: { policy }, end: { kind: "waiting", policy } }),
});
