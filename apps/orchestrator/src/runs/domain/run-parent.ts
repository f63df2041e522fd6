import { invalidArgument, type DomainError } from "@millwright/errors";
import type { NewRun } from "./new-run.ts";
import type { RunParent } from "./run-transaction.ts";
import { DEPTH_MAX, isTerminal } from "./run.ts";

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
