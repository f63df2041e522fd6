import type { ConnectRouter } from "@connectrpc/connect";
import { factories } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { findAutomation } from "../usecases/automation-scope.ts";
import { listDecisions, listEventRuns, type ListDecisionsDeps } from "../usecases/list-decisions.ts";
import {
  createAutomation,
  deleteAutomation,
  listAutomations,
  replaceAutomation,
  type ManageAutomationsDeps,
} from "../usecases/manage-automations.ts";
import { replayDelivery, type ReplayDeliveryDeps } from "../usecases/replay-delivery.ts";
import { runAutomation, type RunAutomationDeps } from "../usecases/run-automation.ts";
import { toAutomationMessage, toDecisionMessage } from "./automation-messages.ts";

export type AutomationRoutesDeps = ManageAutomationsDeps & ListDecisionsDeps & RunAutomationDeps & ReplayDeliveryDeps;

/** Registers the RPCs of automations and decisions. */
export function automationRoutes(router: ConnectRouter, deps: AutomationRoutesDeps): void {
  router.service(factories.AutomationService, {
    listAutomations: served(async ({ factoryUid, pageSize, pageToken }: factories.ListAutomationsRequest, caller) => {
      const page = await listAutomations(deps, caller, factoryUid, { size: pageSize, token: pageToken });
      return { automations: page.automations.map(toAutomationMessage), nextPageToken: page.nextPageToken };
    }),
    getAutomation: served(async (ref: factories.GetAutomationRequest, caller) => ({
      automation: toAutomationMessage((await findAutomation(deps, caller, ref, "factory.view")).automation),
    })),
    createAutomation: served(
      async ({ factoryUid, automation = {}, idempotencyKey }: factories.CreateAutomationRequest, caller) => ({
        automation: toAutomationMessage(
          await createAutomation(deps, caller, { factoryUid, automation, idempotencyKey }),
        ),
      }),
    ),
    replaceAutomation: served(async ({ automation = {}, ...ref }: factories.ReplaceAutomationRequest, caller) => ({
      automation: toAutomationMessage(await replaceAutomation(deps, caller, ref, automation)),
    })),
    deleteAutomation: served(async (ref: factories.DeleteAutomationRequest, caller) => {
      await deleteAutomation(deps, caller, ref);
      return {};
    }),
    runAutomation: served(async (ref: factories.RunAutomationRequest, caller) => ({
      decision: toDecisionMessage(await runAutomation(deps, caller, ref)),
    })),
    replayDelivery: served(async (asked: factories.ReplayDeliveryRequest, caller) => {
      const { decision, wouldTrigger } = await replayDelivery(deps, caller, asked);
      return { decision: toDecisionMessage(decision), wouldTrigger };
    }),
    listDecisions: served(async (request: factories.ListDecisionsRequest, caller) => {
      const page = await listDecisions(deps, caller, request);
      return { decisions: page.decisions.map(toDecisionMessage), nextPageToken: page.nextPageToken };
    }),
    listEventRuns: served(async (request: factories.ListEventRunsRequest, caller) => ({
      runs: await listEventRuns(deps, caller, request),
    })),
  });
}
