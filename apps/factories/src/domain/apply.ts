import type { AutomationPart, Definition } from "@millwright/definition";
import { DomainError } from "@millwright/errors";
import type { FactoryUid, TeamUid } from "@millwright/ids";
import type { ProjectedChange } from "./automation.ts";
import type { BranchError } from "./branch.ts";
import type { Factory } from "./factory.ts";
import type { PlanItem } from "./plan.ts";
import type { OwnedDiagnostic, Tree } from "./source.ts";

/** A version of a factory's definition, and for whom it is brought about. */
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
  /** Its registered head as it was when the apply began. */
  headBefore: string | null;
  /** The apply took the newest head, which is thereby reported. */
  isNewest: boolean;
};

/** What a version consists of before anybody has staged it. */
export type NewVersion = {
  fingerprint: string;
  tree: Tree;
  definition: Definition;
  activation: Omit<Activation, "version">;
};

/** What is kept of an apply that failed: the error, where people look for it. `dropped`: the version that was opened for it. */
export type FailedApply = { error?: BranchError; branch?: AppliedBranch; dropped?: Activation; now: Date };

/** What the commit point writes. */
export type Commit<Event> = {
  activation: Activation;
  branch?: AppliedBranch;
  diagnostics: OwnedDiagnostic[];
  plan: PlanItem[];
  now: Date;
  /** The record as the definition has it. */
  define: (factory: Factory) => Factory;
  /** Of the files: in force with the commit. */
  automations: readonly AutomationPart[];
  facts: (factory: Factory, automations: readonly ProjectedChange[]) => Event[];
};

/** Kinds of durable work that applies leave; its payload is an Activation. */
export const ACTIVATE = "definition.activate";
export const DROP = "definition.drop";

/** One item of work per factory and version. */
export const workKey = ({ factory, version }: Activation): string => `${factory.uid}/${version}`;

export const applyInProgress = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "apply_in_progress",
    message: "Another apply of this factory is under way; retry in a moment.",
    retryable: true,
  });
