import { checkLease, type CheckLeaseDeps } from "../usecases/check-lease.ts";
import { getQueueStatus, type GetQueueStatusDeps } from "../usecases/get-queue-status.ts";
import type { ConnectRouter } from "@connectrpc/connect";
import { orchestrator } from "@millwright/contracts";
import { allowServices, callerOf } from "@millwright/rpc";
import { budgetMessage } from "../../budgets/rpc/budget-routes.ts";
import { leaseRef } from "./worker-messages.ts";

export type LeaseRoutesDeps = GetQueueStatusDeps & CheckLeaseDeps;

/** The services that may call each method of LeaseService in their own name. Only the gateway checks run tokens. */
export const leaseAllowList = allowServices(orchestrator.LeaseService, { checkLease: ["gateway"] });

/** Registers LeaseService: the queue, and the leases of executions. */
export function leaseRoutes(router: ConnectRouter, deps: LeaseRoutesDeps): void {
  router.service(orchestrator.LeaseService, {
    async getQueueStatus({ runUid }, context) {
      const { budgets, ...status } = await getQueueStatus(deps, callerOf(context), runUid);
      return { ...status, budgets: budgets.map(budgetMessage) };
    },
    async checkLease(request) {
      const run = await checkLease(deps, leaseRef(request));
      return {
        runUid: run.runUid,
        rootRunUid: run.rootRunUid,
        creatorUid: run.creatorUid,
        teamUid: run.owner.type === "team" ? run.owner.uid : "",
        ownerType: run.owner.type,
        ownerUid: run.owner.uid,
        agentUid: run.agentUid ?? "",
        factoryUid: run.factoryUid ?? "",
      };
    },
  });
}
