import { invalidArgument, type DomainError } from "@millwright/errors";
import type { RunUid } from "@millwright/ids";
import type { NewRun } from "./new-run.ts";
import { DEPTH_MAX, isTerminal, type Owner, type RunState } from "./run.ts";

/** The members of a parent run that creating its children requires. */
export type RunParent = {
  readonly uid: RunUid;
  readonly rootRunUid: RunUid;
  readonly depth: number;
  readonly state: RunState;
  readonly owner: Owner;
  readonly metadata: Readonly<Record<string, string>>;
  /** True if it or an ancestor has a cost limit. */
  readonly isCostLimited?: boolean;
};

/**
 * Returns the parent of a requested run among the locked runs, or undefined if the request names none. Errors:
 * parent_run_invalid, depth_exceeded (invalid_argument).
 */
export function parentOf({ parentRunUid, owner }: NewRun, parents: readonly RunParent[]): RunParent | undefined {
  if (parentRunUid === undefined) return undefined;
  const parent = parents.find(({ uid }) => uid === parentRunUid.toLowerCase());
  if (!parent || parent.owner.type !== owner.type || parent.owner.uid !== owner.uid) throw parentInvalid();
  if (isTerminal(parent.state))
    throw invalidArgument("parent_run_invalid", "The parent run has ended. Create the run without parent_run_id.");
  if (parent.depth >= DEPTH_MAX)
    throw invalidArgument(
      "depth_exceeded",
      `Runs can be nested at most ${DEPTH_MAX} levels deep. Create the run without parent_run_id.`,
    );
  return parent;
}

/** The error if the parent of a run does not exist or may not be known to the caller. */
export const parentInvalid = (): DomainError =>
  invalidArgument("parent_run_invalid", "parent_run_id must be a run of the same owner that is visible to you.");
