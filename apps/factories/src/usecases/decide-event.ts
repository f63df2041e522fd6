import type { Clock } from "@millwright/clock";
import type { DomainError } from "@millwright/errors";
import { chainMetadata, dispatcherConfig, type Automation } from "../domain/automation.ts";
import { judge, type CheckTrigger, type Decision, type RunOrder } from "../domain/decision.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";

/** How an event looks to automations: what triggers say to it, what must not start, and what a run of it is told. */
export type Look = {
  /** Whether the event is the automation's to look at; absent: every listener's. */
  readonly concerns?: (automation: Automation) => boolean;
  readonly check: CheckTrigger;
  /** Why the code host has not answered what filters need; absent: it has answered, or was not asked. */
  readonly delay?: DomainError;
  /** Why a matching automation must not start; undefined: it may. */
  readonly veto: (automation: Automation) => string | undefined;
  readonly tell: (automation: Automation) => Pick<
    RunOrder,
    "prompt" | "source" | "metadata" | "payload" | "continues"
  > & {
    /** Automations whose runs have led to this one, the first one first. */
    readonly chain?: readonly string[];
  };
};

/** By provider: gathers what deciding needs, asking whoever has it. */
export type Looks = Readonly<
  Record<string, (event: TriggerEvent, automations: readonly Automation[]) => Promise<Look>>
>;

export type DecideEventDeps<Tx> = {
  looks: Looks;
  automations: { listeningTo(factoryUid: string, provider: string): Promise<Automation[]> };
  decisions: {
    keep(
      event: TriggerEvent,
      decisions: readonly Decision[],
      now: Date,
      more?: (tx: Tx) => Promise<void>,
    ): Promise<void>;
  };
  clock: Clock;
};

/**
 * Decides about an event, by the automations that serve now: one decision for each that listens, and work that makes the run
 * of each that matches. No code host is asked here: an automation whose filter needs its answer is delayed, and its siblings are
 * not. `finish` ends the work of deciding in the same transaction, so that nothing is lost or done twice.
 */
export async function decideEvent<Tx>(
  deps: DecideEventDeps<Tx>,
  event: TriggerEvent,
  finish?: (tx: Tx) => Promise<void>,
): Promise<void> {
  const automations = await deps.automations.listeningTo(event.factoryUid, event.provider);
  const look = automations.length > 0 ? await deps.looks[event.provider]?.(event, automations) : undefined;
  const decisions = look ? automations.flatMap((automation) => decideOne(automation, look) ?? []) : [];
  await deps.decisions.keep(event, decisions, deps.clock.now(), finish);
}

/** Undefined: the automation does not listen to such events. */
export function decideOne(automation: Automation, look: Look): Decision | undefined {
  if (look.concerns?.(automation) === false) return undefined;
  const verdict = judge(automation, look.check, look.veto(automation));
  if (!verdict) return undefined;
  const of = { automationUid: automation.uid, automationName: automation.name, order: null, runUid: null };
  if (verdict.outcome === "undecided")
    return {
      ...verdict,
      ...of,
      outcome: "pending",
      ...(look.delay && { explanation: delayOf(look.delay) }),
      isDelayed: true,
    };
  const order = verdict.outcome === "pending" ? orderOf(automation, look.tell(automation)) : null;
  return { ...verdict, ...of, outcome: verdict.outcome, order };
}

/** Why a decision is delayed, as it is shown. */
export const delayOf = (delay: Look["delay"]): string =>
  `The code host could not be asked for what a filter needs: ${delay?.message ?? "it does not answer."}`;

/** What a run of the automation is made of. */
export const orderOf = (
  { uid, name, rules, creator }: Automation,
  { chain = [], ...told }: ReturnType<Look["tell"]>,
): RunOrder => ({
  ...told,
  ...(rules.agent !== undefined && { agent: rules.agent }),
  title: name,
  config: dispatcherConfig(rules),
  creator,
  metadata: { ...told.metadata, automation_uid: uid, ...chainMetadata([...chain, uid]) },
});
