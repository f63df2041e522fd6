import type { AutomationPart, Definition } from "@millwright/definition";
import { DomainError } from "@millwright/errors";
import type { FactoryUid, TeamUid } from "@millwright/ids";
import type { ProjectedChange } from "./automation.ts";
import type { BranchError } from "./branch.ts";
import type { Factory } from "./factory.ts";
import type { PlanItem } from "./plan.ts";
import type { OwnedDiagnostic, Tree } from "./source.ts";

/** A version of a factory's definition and the principal that requested it. */
export type Activation = {
  factory: { uid: FactoryUid; teamUid: TeamUid };
  version: number;
  actor: { type: string; uid: string };
  requestId: string;
};

/** The tracked branch that an apply takes its tree from. */
export type AppliedBranch = {
  uid: string;
  isProduction: boolean;
  /** Its registered head when the apply began. */
  headBefore: string | null;
  /** The apply read the newest head, which is registered with it. */
  isNewest: boolean;
};

/** The content of a version before it is staged. */
export type NewVersion = {
  fingerprint: string;
  tree: Tree;
  definition: Definition;
  activation: Omit<Activation, "version">;
};

/** What is stored of a failed apply. `dropped`: the version that was allocated for it. */
export type FailedApply = { error?: BranchError; branch?: AppliedBranch; dropped?: Activation; now: Date };

/** What the commit point writes. */
export type Commit<Event> = {
  activation: Activation;
  branch?: AppliedBranch;
  diagnostics: OwnedDiagnostic[];
  plan: PlanItem[];
  now: Date;
  /** Returns the record with the settings of the definition. */
  define: (factory: Factory) => Factory;
  /** Of the files; active with the commit. */
  automations: readonly AutomationPart[];
  events: (factory: Factory, automations: readonly ProjectedChange[]) => Event[];
};

/** Kinds of durable work of applies; the payload is an Activation. */
export const ACTIVATE = "definition.activate";
export const DROP = "definition.drop";

/** One item of work per factory and version. */
export const workKey = ({ factory, version }: Activation): string => `${factory.uid}/${version}`;

export const applyInProgress = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "apply_in_progress",
    message: "Another apply of this factory is in progress. Retry in a few seconds.",
    retryable: true,
  });
