import { DomainError } from "@millwright/errors";
import type { Factory } from "./factory.ts";

/** The agent that receives a factory's work. */
export type Foreman = { agentUid: string; agentName: string };

/** The run of a dispatch. */
export type NewRun = {
  factory: Factory;
  agentUid: string;
  prompt: string;
  title?: string;
  metadata: Record<string, string>;
  idempotencyKey?: string;
};

export const foremanMissing = (cause?: unknown): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "foreman_missing",
    message: "The factory has no foreman to receive work. Apply a definition with an agent of type FOREMAN first.",
    cause,
  });
