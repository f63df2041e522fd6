import type { ModelProvider } from "../model-provider.ts";
import { nextScriptedStep } from "./next-step.ts";

/** "Scripted (no AI)": runs the steps written in the prompt through the same tools, events and borders as any model's. */
export const scriptedProvider: ModelProvider = {
  name: "scripted",
  isSlow: false,
  step: async ({ events, agentPrompt }) => nextScriptedStep(events, agentPrompt),
};
