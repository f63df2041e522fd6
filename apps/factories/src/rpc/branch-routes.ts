import type { ConnectRouter } from "@connectrpc/connect";
import { factories } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import type { ApplySourceDeps } from "../usecases/apply-source.ts";
import type { HeadDeps } from "../usecases/branch-heads.ts";
import {
  applyBranch,
  deleteBranch,
  getBranch,
  listBranches,
  trackBranch,
  type DeleteBranchDeps,
  type TrackBranchDeps,
} from "../usecases/branches.ts";
import { toBranchMessage } from "./branch-messages.ts";

export type BranchRoutesDeps = TrackBranchDeps &
  DeleteBranchDeps &
  ApplySourceDeps &
  HeadDeps &
  Parameters<typeof listBranches>[0];

/** Registers every RPC of tracked branches with the use case that serves it. */
export function branchRoutes(router: ConnectRouter, deps: BranchRoutesDeps): void {
  router.service(factories.BranchService, {
    getBranch: served(async ({ factoryUid, branchUid }: factories.GetBranchRequest, caller) => ({
      branch: toBranchMessage(await getBranch(deps, caller, factoryUid, branchUid)),
    })),
    listBranches: served(async ({ factoryUid }: factories.ListBranchesRequest, caller) => ({
      branches: (await listBranches(deps, caller, factoryUid)).map(toBranchMessage),
    })),
    trackBranch: served(async ({ factoryUid, name }: factories.TrackBranchRequest, caller) => {
      const tracked = await trackBranch(deps, caller, { factoryUid, name });
      return { branch: toBranchMessage(tracked), created: tracked.isNew };
    }),
    deleteBranch: served(async ({ factoryUid, branchUid }: factories.DeleteBranchRequest, caller) => {
      await deleteBranch(deps, caller, factoryUid, branchUid);
      return {};
    }),
    applyBranch: served(async ({ factoryUid, branchUid }: factories.ApplyBranchRequest, caller) => ({
      branch: toBranchMessage(await applyBranch(deps, caller, factoryUid, branchUid)),
    })),
  });
}
