import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { isUuid, type FactoryUid } from "@millwright/ids";
import { branchDeleted, freshnessOf, problemOf, type Freshness, type TrackedBranch } from "../domain/branch.ts";
import { checkBranchName, type Source, type SourceSettings } from "../domain/source.ts";
import { branchCreated, branchRetired } from "../events/branch-events.ts";
import { originOf } from "../events/origin.ts";
import { putInForce, type ApplySourceDeps } from "./apply-source.ts";
import { lookUpHead, type HeadDeps } from "./branch-heads.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

type ReadDeps = ScopeDeps & {
  sources: { find(uid: FactoryUid): Promise<Source | undefined> };
  branches: { find(factoryUid: FactoryUid, uid: string): Promise<TrackedBranch | undefined> };
  trees: {
    /** Whether a source is a repository of this server's disk that is not there. Of other repositories, only a check of the head can tell. */
    isMissing(settings: SourceSettings): Promise<boolean>;
  };
};

/** A branch, how fresh what was applied of it is, and whether the definition that serves is its. */
export type BranchStatus = { branch: TrackedBranch; freshness: Freshness; isServing: boolean };

/**
 * Reads a tracked branch; writes nothing and asks no repository, only whether a local one is there.
 *
 * Errors: factory_not_found · not_authorized · branch_not_found (absent, of another factory, forgotten). Source: API spec §4.
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

/** The branches that a factory tracks, the production branch first. Errors: factory_not_found · not_authorized. */
export async function listBranches(
  deps: ReadDeps & { branches: { list(factoryUid: FactoryUid): Promise<TrackedBranch[]> } },
  caller: Caller,
  factoryUid: string,
): Promise<BranchStatus[]> {
  const factory = await findFactory(deps, caller, factoryUid, "factory.view");
  const [branches, source] = [await deps.branches.list(factory.uid), await deps.sources.find(factory.uid)];
  const isMissing = await isMissingSource(deps, source);
  return branches.map((branch) => describe(branch, source, isMissing));
}

export type TrackBranchDeps = ReadDeps & {
  branches: {
    /** Answers the tracked branch of this name if there is one. Errors: source_not_git · too_many_branches · factory_not_found. */
    track(
      factoryUid: FactoryUid,
      name: string,
      now: Date,
      fact: (branch: TrackedBranch) => NewEvent,
    ): Promise<{ branch: TrackedBranch; isNew: boolean }>;
  };
  heads: { wake(): void };
  clock: Clock;
};

/**
 * Tracks another branch of the source's repository. A branch whose tracking was retired gets a new identity.
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
  branches: {
    /** Retires the tracking; of a branch that is gone, nothing. Errors: production_branch. */
    retire(uid: string, now: Date, fact: (branch: TrackedBranch) => NewEvent): Promise<void>;
  };
  clock: Clock;
};

/**
 * Retires the tracking of a branch. What serves, the repository and existing runs stay as they are. An absent branch, one of
 * another factory and a retired one are fine alike.
 *
 * Errors: factory_not_found · not_authorized · production_branch (conflict). Source: API spec §3, §4.
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
    await deps.branches.retire(branch.uid, deps.clock.now(), (gone) => branchRetired(gone, originOf(caller)));
}

/**
 * Brings the definition at a branch's registered head into force. Requests for the same head converge on one application; a head
 * that moves meanwhile stays to be applied. A branch without a head is looked up once. Existing runs keep their settings.
 *
 * Errors: as `applySource`, and branch_not_found · branch_deleted, branch_head_unknown, branch_head_gone, source_not_git (conflict).
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
    const looked = await lookUpHead(deps, found);
    if (looked?.checkError && looked.checkError.code !== "branch_missing") throw problemOf(looked.checkError);
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
