import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import type { DomainError } from "@millwright/errors";
import { chainMetadata, dispatcherConfig, type Automation } from "../domain/automation.ts";
import { evaluateAutomation, type CheckTrigger, type Decision, type RunInput } from "../domain/decision.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import type { AutomationStore } from "../store/automation-store.ts";
import type { DecisionStore } from "../store/decision-store.ts";

/**
 * The evaluation of an event: which triggers match it, which automations must not start, and the input of their runs.
 */
export type EventEvaluation = {
  /** Returns whether the event concerns the automation. Absent: it concerns every automation with such a trigger. */
  readonly concerns?: (automation: Automation) => boolean;
  readonly check: CheckTrigger;
  /** The error of the code host that filters wait for. Absent: it has responded, or was not queried. */
  readonly delay?: DomainError;
  /** Returns why a matching automation must not start, or undefined if it may. */
  readonly veto: (automation: Automation) => string | undefined;
  readonly runInput: (automation: Automation) => Pick<
    RunInput,
    "prompt" | "source" | "metadata" | "payload" | "continues"
  > & {
    /** The automations that caused this run, oldest first. */
    readonly chain?: readonly string[];
  };
};

/** Evaluators by provider. Each reads the data that the decision requires from the service that owns it. */
export type Evaluators = Readonly<
  Record<string, (event: TriggerEvent, automations: readonly Automation[]) => Promise<EventEvaluation>>
>;

export type DecideEventDeps = {
  evaluators: Evaluators;
  automations: Pick<AutomationStore, "listByProvider">;
  decisions: Pick<DecisionStore, "insert">;
  clock: Clock;
};

/**
 * Decides an event with the current automations: one decision for each automation with such a trigger, and work that
 * starts the run of each match. No code host is queried here: an automation whose filter needs its response is delayed,
 * without delaying others. `finish` finishes the work in the same transaction, so that nothing is lost or repeated.
 */
export async function decideEvent(
  deps: DecideEventDeps,
  event: TriggerEvent,
  finish?: (tx: Sql) => Promise<void>,
): Promise<void> {
  const automations = await deps.automations.listByProvider(event.factoryUid, event.provider);
  const evaluation = automations.length > 0 ? await deps.evaluators[event.provider]?.(event, automations) : undefined;
  const decisions = evaluation ? automations.flatMap((automation) => decideOne(automation, evaluation) ?? []) : [];
  await deps.decisions.insert(event, decisions, deps.clock.now(), finish);
}

/** Returns the decision of an automation, or undefined if it has no trigger for such events. */
export function decideOne(automation: Automation, evaluation: EventEvaluation): Decision | undefined {
  if (evaluation.concerns?.(automation) === false) return undefined;
  const verdict = evaluateAutomation(automation, evaluation.check, evaluation.veto(automation));
  if (!verdict) return undefined;
  const of = { automationUid: automation.uid, automationName: automation.name, runInput: null, runUid: null };
  if (verdict.outcome === "undecided")
    return {
      ...verdict,
      ...of,
      outcome: "pending",
      ...(evaluation.delay && { explanation: delayOf(evaluation.delay) }),
      isDelayed: true,
    };
  const runInput = verdict.outcome === "pending" ? runInputOf(automation, evaluation.runInput(automation)) : null;
  return { ...verdict, ...of, outcome: verdict.outcome, runInput };
}

/** Returns the public explanation of a delay. */
export const delayOf = (delay: EventEvaluation["delay"]): string =>
  `The code host could not be queried for data that a filter needs: ${delay?.message ?? "it does not respond."}`;

/**
 * Returns the input of an automation's run. Its metadata has the uid of the automation twice: as `automation_id`, and as
 * `automation_uid`, by which chains and the list of runs find it.
 */
export const runInputOf = (
  { uid, name, rules, creator }: Automation,
  { chain = [], ...input }: ReturnType<EventEvaluation["runInput"]>,
): RunInput => ({
  ...input,
  agent: rules.agent,
  title: name,
  config: dispatcherConfig(rules),
  creator,
  metadata: { ...input.metadata, automation_id: uid, automation_uid: uid, ...chainMetadata([...chain, uid]) },
});
