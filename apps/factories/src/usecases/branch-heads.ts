import { serviceCaller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { isDomainError } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import type { WarnLog } from "@millwright/errors";
import { branchErrorOf, RETIRED_DAYS, type BranchError, type TrackedBranch } from "../domain/branch.ts";
import type { GitSettings, Source } from "../domain/source.ts";
import { branchUpdated } from "../events/branch-events.ts";
import { originOf, type Origin } from "../events/origin.ts";

export type HeadDeps = {
  sources: { find(uid: FactoryUid): Promise<Source | undefined> };
  branches: {
    observe(
      uid: string,
      observation: { head: string | null; error: BranchError | null },
      now: Date,
      nextMs: (failed: number) => number,
      fact: (branch: TrackedBranch) => NewEvent,
      claim?: string,
    ): Promise<TrackedBranch | undefined>;
    /** `claim` stays true until somebody else looks, is told, or wants a look. */
    claimDue(limit: number, leaseSeconds: number): Promise<{ branch: TrackedBranch; claim: string }[]>;
    forget(days: number): Promise<void>;
  };
  trees: {
    /** The commit that a branch is at; undefined: there is no such branch. Errors: as `take`. */
    headOf(settings: GitSettings, teamUid: TeamUid): Promise<string | undefined>;
  };
  clock: Clock;
  log: WarnLog;
  /** Between two looks at one branch. */
  headPollMs: number;
};

const AT_ONCE = 4;
/** Longer than a look can take: git has a deadline of its own. */
const CLAIM_SECONDS = 120;
/** What cannot be reached is asked less and less often, up to this pause. */
const PAUSE_MS_MAX = 300_000;

export const MISSING: BranchError = {
  code: "branch_missing",
  message: "The repository has no such branch.",
  diagnostics: [],
};

/**
 * Asks the repository for the head of a tracked branch and registers it. That it cannot be reached, or has no such branch, is a
 * finding as well; it is no error. Gives the branch afterwards; undefined: it was forgotten meanwhile.
 *
 * @param claim of a look that counts only while the claim holds: one that takes long must not undo what was found since
 */
export async function lookUpHead(
  deps: HeadDeps,
  branch: TrackedBranch,
  claim?: string,
): Promise<TrackedBranch | undefined> {
  const source = await deps.sources.find(branch.factoryUid);
  if (source?.settings.kind !== "git" || source.settings.url !== branch.repositoryUrl) return branch; // named another repository meanwhile
  const settings = { ...source.settings, branch: branch.name };
  const found = await deps.trees.headOf(settings, branch.teamUid).then(
    (head) => (head === undefined ? { head: null, error: MISSING } : { head, error: null }),
    (error: unknown) => {
      if (!isDomainError(error)) deps.log.warn({ operation: "look up a branch's head", error }, "a look failed");
      return { head: null, error: branchErrorOf(error) };
    },
  );
  return registerHead(deps, branch, found, claim);
}

/** Keeps what was found about a branch's head, and when to look again. Gives the branch afterwards; undefined: it was forgotten meanwhile. */
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

/** Looks up what is due, a few at once. More may be due when it answers "again". */
export async function lookUpDueHeads(deps: HeadDeps): Promise<"again" | "idle"> {
  const due = await deps.branches.claimDue(AT_ONCE, CLAIM_SECONDS);
  const looks = await Promise.allSettled(due.map(({ branch, claim }) => lookUpHead(deps, branch, claim)));
  const failed = looks.find((look) => look.status === "rejected");
  if (failed) throw failed.reason;
  if (due.length === AT_ONCE) return "again";
  await deps.branches.forget(RETIRED_DAYS);
  return "idle";
}

/** With jitter, so that what was registered together is not asked for together for ever. */
function pauseAfter(everyMs: number, failed: number): number {
  const pauseMs =
    failed === 0 ? everyMs : Math.max(everyMs, Math.min(everyMs * 2 ** Math.min(failed, 10), PAUSE_MS_MAX));
  return pauseMs * (0.8 + Math.random() * 0.4);
}

const ownOrigin = (): Origin => originOf(serviceCaller("factories", newUid()));
