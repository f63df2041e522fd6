import type { JsonObject as ProtoObject, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { factories } from "@millwright/contracts";
import { optionalTimestamp } from "@millwright/rpc";
import { CREATOR_LEFT, type Automation } from "../domain/automation.ts";
import type { ShownDecision } from "../domain/decision.ts";

export function toAutomationMessage({
  rules,
  ...automation
}: Automation): MessageInitShape<typeof factories.AutomationSchema> {
  const { agent, prompt, ...definition } = rules;
  return {
    uid: automation.uid,
    factoryUid: automation.factoryUid,
    teamUid: automation.teamUid,
    name: automation.name,
    enabled: automation.enabled,
    prompt,
    management: automation.management,
    definition: definition as unknown as ProtoObject,
    createdAt: timestampFromDate(automation.createdAt),
    updatedAt: timestampFromDate(automation.updatedAt),
    agent,
    disabledReason: automation.creatorLostAccess ? `Disabled: ${CREATOR_LEFT}` : undefined,
    lastFiredAt: optionalTimestamp(automation.lastFiredAt),
  };
}

export const toDecisionMessage = ({
  event,
  runUid,
  checks,
  nextAttemptAt,
  ...decision
}: ShownDecision): MessageInitShape<typeof factories.DecisionSchema> => ({
  eventUid: event.uid,
  automationUid: decision.automationUid,
  automationName: decision.automationName,
  provider: event.provider,
  event: event.event,
  outcome: decision.outcome,
  explanation: decision.explanation,
  checks: checks.map(({ failed, ...check }) => ({ ...check, failed: [...failed] })),
  subject: event.subject,
  occurredAt: timestampFromDate(new Date(event.occurredAt)),
  decidedAt: timestampFromDate(decision.decidedAt),
  runUid: runUid ?? undefined,
  nextAttemptAt: optionalTimestamp(nextAttemptAt),
});
