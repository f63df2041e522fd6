import type { components } from "../gen/api.ts";

export type Stage = components["schemas"]["TaskStage"];

/** The stages in the order of the work. */
export const STAGES: readonly (readonly [stage: Stage, label: string])[] = [
  ["TRIAGE", "Triage"],
  ["SPEC", "Spec"],
  ["IMPLEMENT", "Implement"],
  ["REVIEW", "Review"],
  ["COMPLETE", "Complete"],
  ["CANCELLED", "Cancelled"],
];
export const stageLabel = (stage: Stage): string => STAGES.find(([each]) => each === stage)?.[1] ?? stage;
