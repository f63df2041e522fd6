import { serviceCaller, type Caller, type PrincipalType } from "@millwright/caller";
import { jsonBytes, type CodeHostDelivery } from "@millwright/code-host-events";
import { DomainError, isDomainError } from "@millwright/errors";
import { as, type FactoryUid } from "@millwright/ids";
import { causeKeyOf, CREATOR_LEFT } from "../domain/automation.ts";
import type { AutomationRun, DecisionEnd, DecisionRef, RunInput } from "../domain/decision.ts";
import type { Foreman } from "../domain/dispatch.ts";
import { PAYLOAD_FILE } from "../domain/envelope.ts";
import type { Factory } from "../domain/factory.ts";
import type { StoredDelivery } from "../domain/stored-delivery.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import type { ApplyStore } from "../store/apply-store.ts";
import type { AutomationStore } from "../store/automation-store.ts";
import type { DecisionStore } from "../store/decision-store.ts";
import type { FactoryStore } from "../store/factory-store.ts";

export type StartDecidedRunDeps = {
  decisions: Pick<DecisionStore, "findRunInput" | "settle">;
  factories: Pick<FactoryStore, "find">;
  automations: Pick<AutomationStore, "find">;
  applies: Pick<ApplyStore, "isSettling">;
  agents: { findForeman(caller: Caller, factory: Factory): Promise<Foreman> };
  deliveries: {
    delivery(uid: string): Promise<StoredDelivery | undefined>;
    codeHostDelivery(uid: string): Promise<CodeHostDelivery | undefined>;
  };
  runs: {
    /** Creates a run, at most once per cause. */
    startAutomated(caller: Caller, run: AutomationRun): Promise<{ runUid: string }>;
    /**
     * Continues a conversation with a message to its run or with a new run, at most once per cause. Returns undefined
     * if that is impossible.
     */
    continueAutomated(
      caller: Caller,
      run: AutomationRun,
      conversationUid: string,
    ): Promise<{ runUid: string } | undefined>;
  };
  publicUrl: string;
  /** This service's name as a caller. */
  service: string;
};

/**
 * Starts the run of a pending decision for the automation's creator, or continues the task. After a crash it is
 * retried, and the same cause returns the same run. A decision that can never become a run ends as failed, with the
 * reason. While owners activate a new version, it is retried instead.
 * Errors: temporary errors of creating a run.
 */
export async function startDecidedRun(deps: StartDecidedRunDeps, ref: DecisionRef): Promise<void> {
  const stored = await deps.decisions.findRunInput(ref);
  if (stored?.outcome !== "pending" || !stored.runInput) return;
  try {
    await deps.decisions.settle(ref, await start(deps, ref, stored.event, stored.runInput));
  } catch (error) {
    if (!isDomainError(error) || !FINAL.has(error.kind) || error.retryable) throw error;
    if (await deps.applies.isSettling(as<FactoryUid>(ref.factoryUid))) throw unsettled(error);
    await deps.decisions.settle(ref, {
      outcome: "failed",
      explanation: `It matches, but the run could not be created: ${error.message}`,
    });
  }
}

/** The kinds of errors that a retry would not resolve. */
const FINAL: ReadonlySet<string> = new Set([
  "invalid_argument",
  "not_found",
  "permission_denied",
  "conflict",
  "unsupported",
  "too_large",
  "feature_off",
]);

async function start(
  deps: StartDecidedRunDeps,
  ref: DecisionRef,
  event: TriggerEvent,
  runInput: RunInput,
): Promise<DecisionEnd> {
  const factory = await deps.factories.find(as<FactoryUid>(ref.factoryUid));
  if (!factory)
    throw new DomainError({ kind: "not_found", reason: "factory_not_found", message: "The factory was deleted." });
  const automation = await deps.automations.find(factory.uid, ref.automationUid);
  if (automation?.creatorLostAccess && automation.creator.uid === runInput.creator.uid) {
    throw new DomainError({
      kind: "permission_denied",
      reason: "creator_lost_access",
      message: `The automation is disabled: ${CREATOR_LEFT}`,
    });
  }
  const creator = { type: runInput.creator.type as PrincipalType, uid: runInput.creator.uid };
  const caller = serviceCaller(deps.service, event.requestId, creator, [
    {
      teamUid: factory.teamUid,
      verbs: ["factory.view", "run.view", "run.create", ...(runInput.continues ? (["run.manage"] as const) : [])],
    },
  ]);
  const payload = await payloadOf(deps, runInput);
  const foreman = runInput.agent === undefined ? await deps.agents.findForeman(caller, factory) : undefined;
  const run: AutomationRun = {
    factory,
    runInput,
    causeKey: causeKeyOf(ref.eventUid, ref.automationUid),
    triggerUrl: `${deps.publicUrl}/factories/${ref.factoryUid}/events/${ref.eventUid}`,
    agentUid: foreman?.agentUid,
    payload: payload && { fileName: PAYLOAD_FILE, bytes: payload },
  };
  const { continues } = runInput;
  const continued = continues && (await deps.runs.continueAutomated(caller, run, continues.conversationUid));
  if (continued)
    return {
      outcome: "continued",
      runUid: continued.runUid,
      explanation: `It matches; task ${continues.taskUid}, which is bound to the same item, continues in run ${continued.runUid}.`,
    };
  return { outcome: "fired", ...(await deps.runs.startAutomated(caller, run)) };
}

async function payloadOf(deps: StartDecidedRunDeps, { payload }: RunInput): Promise<Uint8Array | undefined> {
  if (!payload) return undefined;
  if ("json" in payload) return Buffer.from(payload.json);
  if ("deliveryUid" in payload) {
    const delivery = await deps.deliveries.delivery(payload.deliveryUid);
    if (delivery?.payload) return delivery.payload;
  } else {
    const delivery = await deps.deliveries.codeHostDelivery(payload.codeHostDeliveryUid);
    if (delivery) return jsonBytes(delivery);
  }
  throw new DomainError({
    kind: "not_found",
    reason: "delivery_not_found",
    message: "The delivery is no longer stored, so it cannot be replayed.",
  });
}

const unsettled = (cause: unknown): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "definition_not_active",
    message: "A new version of the definition is being activated. Retry in a few seconds.",
    cause,
  });
