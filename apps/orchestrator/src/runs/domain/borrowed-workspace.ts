import { invalidArgument, type DomainError } from "@millwright/errors";
import type { BorrowedWorkspace } from "./resolved-run.ts";
import type { FrozenRepository } from "./pinned-repository.ts";
import { isTerminal, type Owner, type RunState } from "./run.ts";

/** The workspace of an ended run. */
export type LeftWorkspace = {
  readonly runUid: string;
  readonly owner: Owner;
  readonly state: RunState;
  /** Repositories at the commits that were cloned. */
  readonly repositories: readonly FrozenRepository[];
  /** Absent: the workspace equals its clones. */
  readonly snapshotKey?: string;
};

/**
 * Returns the workspace and the repositories with which a run of this owner starts. Errors: workspace_missing
 * (invalid_argument).
 */
export function borrow(
  left: LeftWorkspace | undefined,
  owner: Owner,
): { readonly workspace: BorrowedWorkspace; readonly repositories: readonly FrozenRepository[] } {
  if (!left || !isBorrowable(left, owner)) throw workspaceMissing();
  return {
    workspace: { run_uid: left.runUid, snapshot_key: left.snapshotKey || undefined },
    repositories: left.repositories,
  };
}

/** Returns whether a run has ended and belongs to this owner. */
export const isBorrowable = ({ owner, state }: Pick<LeftWorkspace, "owner" | "state">, borrower: Owner): boolean =>
  owner.type === borrower.type && owner.uid === borrower.uid && isTerminal(state);

export const workspaceMissing = (): DomainError =>
  invalidArgument(
    "workspace_missing",
    "workspace_of_run_uid must name an ended run of the same owner whose last workspace is still stored.",
  );
