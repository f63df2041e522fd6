import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import { isUuid, type FactoryUid } from "@millwright/ids";
import { branchDeleted, freshnessOf, problemOf, type Freshness, type TrackedBranch } from "../domain/branch.ts";
import { checkBranchName, type Source, type SourceSettings } from "../domain/source.ts";
import { branchCreated, branchUntracked } from "../events/branch-events.ts";
import { originOf } from "../events/origin.ts";
import type { BranchStore } from "../store/branch-store.ts";
import type { SourceStore } from "../store/source-store.ts";
import { putInForce, type ApplySourceDeps } from "./apply-source.ts";
import { pollHead, type HeadDeps } from "./branch-heads.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

type ReadDeps = ScopeDeps & {
  sources: Pick<SourceStore, "find">;
  branches: Pick<BranchStore, "find">;
  trees: {
    /**
     * Returns whether a source is a local repository that does not exist. For other repositories, only a poll can
     * determine this.
     */
    isMissing(settings: SourceSettings): Promise<boolean>;
  };
};

/** A branch with its freshness, and whether the active definition came from it. */
export type BranchStatus = { branch: TrackedBranch; freshness: Freshness; isServing: boolean };

/**
 * Returns a tracked branch. It writes nothing and contacts no repository, except that it checks whether a local one
 * exists.
 * Errors: factory_not_found · not_authorized · branch_not_found (absent, of another factory, pruned).
 */
export async function getBranch(
  deps: ReadDeps,
  caller: Caller,
  factoryUid: string,
  branchUid: string,
): Promise<BranchStatus> {
  const factory = await findFactory(deps, caller, factoryUid, "factory.view");
  return statusOf(deps, await findBranch(deps, factory.uid, branchUid));
}

/**
 * Lists the branches that a factory tracks, the production branch first.
 * Errors: factory_not_found · not_authorized.
 */
export async function listBranches(
  deps: ReadDeps & { branches: Pick<BranchStore, "list"> },
  caller: Caller,
  factoryUid: string,
): Promise<BranchStatus[]> {
  const factory = await findFactory(deps, caller, factoryUid, "factory.view");
  const [branches, source] = [await deps.branches.list(factory.uid), await deps.sources.find(factory.uid)];
  const isMissing = await isMissingSource(deps, source);
  return branches.map((branch) => describe(branch, source, isMissing));
}

export type TrackBranchDeps = ReadDeps & {
  branches: Pick<BranchStore, "track">;
  heads: { wake(): void };
  clock: Clock;
};

/**
 * Tracks another branch of the source's repository. A branch that was tracked before gets a new uid.
 *
 * Errors: factory_not_found · not_authorized · invalid_source · too_many_branches · source_not_git (conflict).
 */
export async function trackBranch(
  deps: TrackBranchDeps,
  caller: Caller,
  input: { factoryUid: string; name: string },
): Promise<BranchStatus & { isNew: boolean }> {
  const factory = await findFactory(deps, caller, input.factoryUid, "source.apply");
  const { branch, isNew } = await deps.branches.track(
    factory.uid,
    checkBranchName(input.name),
    deps.clock.now(),
    (next) => branchCreated(next, originOf(caller)),
  );
  deps.heads.wake();
  return { ...(await statusOf(deps, branch)), isNew };
}

export type DeleteBranchDeps = ReadDeps & {
  branches: Pick<BranchStore, "retire">;
  clock: Clock;
};

/**
 * Ends the tracking of a branch. The active definition, the repository and existing runs are unchanged. An absent
 * branch, a branch of another factory and a deleted branch are ignored.
 * Errors: factory_not_found · not_authorized · production_branch (conflict).
 */
export async function deleteBranch(
  deps: DeleteBranchDeps,
  caller: Caller,
  factoryUid: string,
  branchUid: string,
): Promise<void> {
  const factory = await findFactory(deps, caller, factoryUid, "source.apply");
  const branch = isUuid(branchUid) ? await deps.branches.find(factory.uid, branchUid) : undefined;
  if (branch && !branch.deletedAt)
    await deps.branches.retire(branch.uid, deps.clock.now(), (gone) => branchUntracked(gone, originOf(caller)));
}

/**
 * Applies the definition at a branch's registered head. Concurrent requests for the same head result in one apply. A
 * head that moves during the apply is not applied. A branch without a head is polled once. Existing runs retain their
 * settings.
 * Errors: as `applySource`, and branch_not_found · branch_deleted, branch_head_unknown, branch_head_gone,
 * source_not_git (conflict).
 */
export async function applyBranch(
  deps: ApplySourceDeps & HeadDeps & ReadDeps,
  caller: Caller,
  factoryUid: string,
  branchUid: string,
): Promise<BranchStatus> {
  const factory = await findFactory(deps, caller, factoryUid, "source.apply");
  const found = await findBranch(deps, factory.uid, branchUid);
  if (found.deletedAt) throw branchDeleted();
  if (found.registeredHeadSha === null) {
    const polled = await pollHead(deps, found);
    if (polled?.pollError && polled.pollError.code !== "branch_missing") throw problemOf(polled.pollError);
  }
  await putInForce(deps, caller, factory, { branchUid: found.uid });
  return statusOf(deps, await findBranch(deps, factory.uid, found.uid));
}

async function findBranch(
  deps: Pick<ReadDeps, "branches">,
  factoryUid: FactoryUid,
  uid: string,
): Promise<TrackedBranch> {
  const branch = isUuid(uid) ? await deps.branches.find(factoryUid, uid) : undefined;
  if (!branch) throw notFound("branch");
  return branch;
}

async function statusOf(deps: ReadDeps, branch: TrackedBranch): Promise<BranchStatus> {
  const source = await deps.sources.find(branch.factoryUid);
  return describe(branch, source, await isMissingSource(deps, source));
}

const isMissingSource = async ({ trees }: ReadDeps, source: Source | undefined): Promise<boolean> =>
  source !== undefined && trees.isMissing(source.settings);

const describe = (branch: TrackedBranch, source: Source | undefined, isMissing: boolean): BranchStatus => ({
  branch,
  freshness: freshnessOf(branch, source, isMissing),
  isServing: branch.appliedFingerprint !== null && branch.appliedFingerprint === source?.status.appliedFingerprint,
});
