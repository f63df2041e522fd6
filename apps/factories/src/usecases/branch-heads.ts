import { serviceCaller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { isDomainError, type WarnLog } from "@millwright/errors";
import { newUid, type TeamUid } from "@millwright/ids";
import { branchErrorOf, RETIRED_DAYS, type BranchError, type TrackedBranch } from "../domain/branch.ts";
import type { GitSettings } from "../domain/source.ts";
import { branchUpdated } from "../events/branch-events.ts";
import { originOf, type Origin } from "../events/origin.ts";
import type { BranchStore } from "../store/branch-store.ts";
import type { SourceStore } from "../store/source-store.ts";

export type HeadDeps = {
  sources: Pick<SourceStore, "find">;
  branches: Pick<BranchStore, "observe" | "claimDue" | "prune">;
  trees: {
    /** Returns the commit of a branch, or undefined if the branch does not exist. Errors: as `take`. */
    headOf(settings: GitSettings, teamUid: TeamUid): Promise<string | undefined>;
  };
  clock: Clock;
  log: WarnLog;
  /** The interval between polls of one branch, in milliseconds. */
  headPollMs: number;
};

const AT_ONCE = 4;
/** Longer than a poll can take: git has its own timeout. */
const CLAIM_SECONDS = 120;
/** The maximum back-off for unreachable repositories. */
const PAUSE_MS_MAX = 300_000;

export const MISSING: BranchError = {
  code: "branch_missing",
  message: "The repository has no such branch.",
  diagnostics: [],
};

/**
 * Polls the head of a tracked branch and registers it. An unreachable repository or a missing branch is recorded as a
 * result, not thrown. Returns the branch after the change, or undefined if it was pruned.
 *
 * @param claim makes the result count only while the claim is valid, so that a slow poll does not overwrite a newer
 * result
 */
export async function pollHead(
  deps: HeadDeps,
  branch: TrackedBranch,
  claim?: string,
): Promise<TrackedBranch | undefined> {
  const source = await deps.sources.find(branch.factoryUid);
  if (source?.settings.kind !== "git" || source.settings.url !== branch.repositoryUrl) return branch; // the source was changed
  const settings = { ...source.settings, branch: branch.name };
  const found = await deps.trees.headOf(settings, branch.teamUid).then(
    (head) => (head === undefined ? { head: null, error: MISSING } : { head, error: null }),
    (error: unknown) => {
      if (!isDomainError(error))
        deps.log.warn({ operation: "poll a branch head", error }, "polling a branch head failed");
      return { head: null, error: branchErrorOf(error) };
    },
  );
  return registerHead(deps, branch, found, claim);
}

/**
 * Stores the result of a poll and the time of the next one. Returns the branch after the change, or undefined if it was
 * pruned.
 */
export const registerHead = (
  deps: Pick<HeadDeps, "branches" | "clock" | "headPollMs">,
  { uid }: TrackedBranch,
  found: { head: string | null; error: BranchError | null },
  claim?: string,
): Promise<TrackedBranch | undefined> =>
  deps.branches.observe(
    uid,
    found,
    deps.clock.now(),
    (failed) => pauseAfter(deps.headPollMs, failed),
    (next) => branchUpdated(next, ownOrigin(), ["registered_head_sha"]),
    claim,
  );

/** Polls the due heads concurrently. Returns "again" if more may be due. */
export async function pollDueHeads(deps: HeadDeps): Promise<"again" | "idle"> {
  const due = await deps.branches.claimDue(AT_ONCE, CLAIM_SECONDS);
  const results = await Promise.allSettled(due.map(({ branch, claim }) => pollHead(deps, branch, claim)));
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
  if (due.length === AT_ONCE) return "again";
  await deps.branches.prune(RETIRED_DAYS);
  return "idle";
}

/**
 * Returns the delay before the next poll, with jitter, so that branches that were registered at the same time are not
 * polled at the same time.
 */
function pauseAfter(everyMs: number, failed: number): number {
  const pauseMs =
    failed === 0 ? everyMs : Math.max(everyMs, Math.min(everyMs * 2 ** Math.min(failed, 10), PAUSE_MS_MAX));
  return pauseMs * (0.8 + Math.random() * 0.4);
}

const ownOrigin = (): Origin => originOf(serviceCaller("factories", newUid()));
