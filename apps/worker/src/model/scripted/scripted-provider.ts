import type { ModelProvider } from "../model-provider.ts";
import { nextScriptedStep } from "./next-step.ts";

/**
 * The provider "Scripted (no AI)". It runs the steps in the prompt with the same tools, events and limits as any model.
 */
export const scriptedProvider: ModelProvider = {
  name: "scripted",
  isSlow: false,
  step: async ({ events, agentPrompt }) => nextScriptedStep(events, agentPrompt),
};
