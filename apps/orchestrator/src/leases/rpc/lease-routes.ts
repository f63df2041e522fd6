import type { ConnectRouter } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { allowServices, callerOf } from "@millwright/rpc";
import { budgetMessage } from "../../budgets/rpc/budget-routes.ts";
import type { RunRef } from "../../runs/domain/run-token.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { QueueStatusWithBudgets } from "../usecases/get-queue-status.ts";
import { leaseRef } from "./worker-messages.ts";

/** The use cases of the queue and of leases, bound to their stores. */
export type LeaseUseCases = {
  getQueueStatus(caller: Caller, uid: string): Promise<QueueStatusWithBudgets>;
  checkLease(lease: LeaseRef): Promise<RunRef>;
};

/** The services that may call each method of LeaseService in their own name. Only the gateway checks run tokens. */
export const leaseAllowList = allowServices(orchestrator.LeaseService, { checkLease: ["gateway"] });

/** Registers LeaseService: the queue, and the leases of executions. */
export function leaseRoutes(router: ConnectRouter, deps: LeaseUseCases): void {
  router.service(orchestrator.LeaseService, {
    async getQueueStatus({ runUid }, context) {
      const { budgets, ...status } = await deps.getQueueStatus(callerOf(context), runUid);
      return { ...status, budgets: budgets.map(budgetMessage) };
    },
    async checkLease(request) {
      const run = await deps.checkLease(leaseRef(request));
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
