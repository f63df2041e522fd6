import type { TriggerPart } from "@millwright/definition";
import { CREATOR_LEFT, type Automation, type AutomationUid } from "./automation.ts";
import type { Continuation } from "./bound-task.ts";
import type { Factory } from "./factory.ts";
import type { JsonObject } from "@millwright/json";
import type { TriggerEvent } from "./trigger-event.ts";

/** `pending`: its run is being created, or its filter waits for an answer of the code host. `continued`: a task that was there goes on with it. */
export type Outcome = "pending" | "fired" | "continued" | "not_matched" | "disabled" | "suppressed" | "failed";

/** How one trigger looks at an event. `trigger`: its place in the list; `failed`: filters that do not hold. */
export type TriggerCheck = {
  readonly trigger: number;
  readonly passed: boolean;
  readonly detail: string;
  readonly failed: readonly string[];
};

/** What the run of a decision is made of, frozen when it was decided. */
export type RunOrder = {
  /** Name of an agent of the factory; absent: the foreman. */
  readonly agent?: string;
  /** With the envelope. */
  readonly prompt: string;
  readonly title: string;
  /** AgentConfigSnapshot of the automation. */
  readonly config: JsonObject;
  readonly creator: { readonly type: string; readonly uid: string };
  readonly source: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The task that goes on with it, as it was when the decision was made. */
  readonly continues?: Continuation;
  /** Where its event-payload.json is: a stored delivery, or here. Absent: it has none. */
  readonly payload?:
    | { readonly deliveryUid: string }
    | { readonly codeHostDeliveryUid: string }
    | { readonly json: string };
};

/** What became of an event for an automation. */
export type Decision = {
  readonly automationUid: AutomationUid;
  readonly automationName: string;
  readonly outcome: Outcome;
  /** One sentence for people. */
  readonly explanation: string;
  readonly checks: readonly TriggerCheck[];
  /** While its run is being created. */
  readonly order: RunOrder | null;
  readonly runUid: string | null;
  /** Its filter needs what the code host has not answered yet: it is pending without an order, and decided later. */
  readonly isDelayed?: true;
};

/** A decision with its event, as it is shown. */
export type ShownDecision = Omit<Decision, "order" | "outcome" | "isDelayed"> & {
  /** `not_listening`: nothing was decided, as no trigger is about such an event. */
  readonly outcome: Outcome | "not_listening";
  readonly event: TriggerEvent;
  readonly decidedAt: Date;
  /** When the code host is asked next for what the filter needs; null: it does not wait for a code host. */
  readonly nextAttemptAt: Date | null;
};

/** The delayed decisions of one event. `attempt`: how often the code host has been asked for them, this time included. */
export type DelayedRef = { readonly factoryUid: string; readonly eventUid: string; readonly attempt: number };

export type Delayed = {
  readonly event: TriggerEvent;
  readonly automations: readonly { readonly uid: AutomationUid; readonly name: string }[];
};

/** The run that is asked for. */
export type AutomationRun = {
  readonly factory: Factory;
  readonly order: RunOrder;
  /** Absent: the order names one of the factory. */
  readonly agentUid?: string;
  readonly causeKey: string;
  /** The page of what made it. */
  readonly triggerUrl: string;
  readonly payload?: { readonly fileName: string; readonly bytes: Uint8Array };
};

export type DecisionRef = { readonly factoryUid: string; readonly eventUid: string; readonly automationUid: string };

/** How a pending decision ends. */
export type DecisionEnd =
  | { readonly outcome: "fired"; readonly runUid: string }
  | { readonly outcome: "continued"; readonly runUid: string; readonly explanation: string }
  | { readonly outcome: "failed"; readonly explanation: string };

/** Newest first, after a place. */
export type DecisionQuery = {
  readonly factoryUid: string;
  readonly automationUid?: string;
  /** Of an event, or of the delivery that it is about. */
  readonly eventUid?: string;
  readonly after?: { readonly at: Date; readonly eventUid: string; readonly automationUid: string };
  readonly limit: number;
};

/** `eventUid`: of the delivery, when it is about one. */
export type EventRun = {
  readonly eventUid: string;
  readonly automationUid: string;
  readonly automationName: string;
  readonly runUid: string;
};

/** Kinds of durable work: to decide about an event (its payload a TriggerEvent), to decide what was delayed (a DelayedRef), and to make the run of a decision (a DecisionRef). */
export const DECIDE = "automation.decide";
export const DECIDE_DELAYED = "automation.decide-delayed";
export const START = "automation.start";

/** How long it is told why nothing started, and why something did. */
export const KEEP_DAYS = { others: 30, fired: 365 } as const;

/** What a trigger says to an event; undefined: it is about other events. */
export type CheckTrigger = (
  trigger: TriggerPart,
) => (Omit<TriggerCheck, "trigger"> & { readonly isUndecided?: true }) | undefined;

/** `undecided`: no trigger matches, and one of them needs what is not known yet. */
export type Verdict = Pick<Decision, "explanation" | "checks"> & {
  readonly outcome: "pending" | "undecided" | "not_matched" | "disabled" | "suppressed";
};

/**
 * What an automation makes of an event: one matching trigger is enough, and several start one run (factory-files §6.4).
 * `veto` says why it must not start although it matches. Undefined: none of its triggers is about such an event.
 */
export function judge(
  { rules, enabled, creatorLeft }: Pick<Automation, "rules" | "enabled" | "creatorLeft">,
  check: CheckTrigger,
  veto: string | undefined,
): Verdict | undefined {
  const found = rules.triggers.map(check);
  const checks = found.flatMap((one, index): TriggerCheck[] =>
    one ? [{ trigger: index, passed: one.passed, detail: shown(one.detail), failed: one.failed }] : [],
  );
  if (checks.length === 0) return undefined;
  const passed = checks.find((one) => one.passed);
  if (!passed && enabled && found.some((one) => one?.isUndecided))
    return {
      outcome: "undecided",
      checks,
      explanation: "A filter needs what the delivery does not contain; the code host is being asked.",
    };
  if (!passed)
    return {
      outcome: "not_matched",
      checks,
      explanation:
        checks.length === 1 ? checks[0]!.detail : `None of its ${checks.length} triggers for such events matches.`,
    };
  if (!enabled) {
    const explanation = creatorLeft
      ? `It matches, but the automation is disabled: ${CREATOR_LEFT}`
      : "It matches, but the automation is disabled.";
    return { outcome: "disabled", checks, explanation };
  }
  if (veto !== undefined) return { outcome: "suppressed", checks, explanation: veto };
  return { outcome: "pending", checks, explanation: passed.detail };
}

const DETAIL_CHARACTERS_MAX = 2_000;

/** Details quote what outside systems say: without what no column can keep, and not at any length. */
const shown = (detail: string): string =>
  detail.replaceAll("\0", "\uFFFD").slice(0, DETAIL_CHARACTERS_MAX).toWellFormed();
