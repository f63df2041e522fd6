import type { TriggerPart } from "@millwright/definition";
import { CREATOR_LEFT, type Automation, type AutomationUid } from "./automation.ts";
import type { Continuation } from "./bound-task.ts";
import type { Factory } from "./factory.ts";
import type { JsonObject } from "@millwright/json";
import type { TriggerEvent } from "./trigger-event.ts";

/**
 * `pending`: its run is being created, or its filter waits for a response of the code host. `continued`: an existing
 * task continues with it.
 */
export type Outcome = "pending" | "fired" | "continued" | "not_matched" | "disabled" | "suppressed" | "failed";

/** The evaluation of one trigger. `trigger`: its index; `failed`: filters that do not match. */
export type TriggerCheck = {
  readonly trigger: number;
  readonly passed: boolean;
  readonly detail: string;
  readonly failed: readonly string[];
};

/** The input of a decision's run, fixed when it was decided. */
export type RunInput = {
  /** Name of an agent of the factory; absent: the foreman. */
  readonly agent?: string;
  /** Including the envelope. */
  readonly prompt: string;
  readonly title: string;
  /** AgentConfigSnapshot of the automation. */
  readonly config: JsonObject;
  readonly creator: { readonly type: string; readonly uid: string };
  readonly source: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The task that it continues, as of the decision. */
  readonly continues?: Continuation;
  /** The source of its event-payload.json: a stored delivery, or inline JSON. Absent: it has none. */
  readonly payload?:
    | { readonly deliveryUid: string }
    | { readonly codeHostDeliveryUid: string }
    | { readonly json: string };
};

/** The decision of an automation about an event. */
export type Decision = {
  readonly automationUid: AutomationUid;
  readonly automationName: string;
  readonly outcome: Outcome;
  /** One sentence for users. */
  readonly explanation: string;
  readonly checks: readonly TriggerCheck[];
  /** While its run is being created. */
  readonly runInput: RunInput | null;
  readonly runUid: string | null;
  /** Its filter needs a response of the code host: it is pending without a run input, and decided later. */
  readonly isDelayed?: true;
};

/** A decision with its event, as returned by the API. */
export type ShownDecision = Omit<Decision, "runInput" | "outcome" | "isDelayed"> & {
  /** `not_listening`: there is no decision, because no trigger is for such an event. */
  readonly outcome: Outcome | "not_listening";
  readonly event: TriggerEvent;
  readonly decidedAt: Date;
  /** When the code host is queried next for the filter; null: it does not wait for a code host. */
  readonly nextAttemptAt: Date | null;
};

/** The explanation of `not_listening`. */
export const NOT_LISTENING_EXPLANATION = "None of its triggers subscribes to this kind of event.";

/** The delayed decisions of one event. `attempt`: how often the code host has been queried, including this attempt. */
export type DelayedRef = { readonly factoryUid: string; readonly eventUid: string; readonly attempt: number };

export type Delayed = {
  readonly event: TriggerEvent;
  readonly automations: readonly { readonly uid: AutomationUid; readonly name: string }[];
};

/** A run to be created. */
export type AutomationRun = {
  readonly factory: Factory;
  readonly runInput: RunInput;
  /** Absent: the input names an agent of the factory. */
  readonly agentUid?: string;
  readonly causeKey: string;
  /** The page of its cause. */
  readonly triggerUrl: string;
  readonly payload?: { readonly fileName: string; readonly bytes: Uint8Array };
};

export type DecisionRef = { readonly factoryUid: string; readonly eventUid: string; readonly automationUid: string };

/** The result of a pending decision. */
export type DecisionEnd =
  | { readonly outcome: "fired"; readonly runUid: string }
  | { readonly outcome: "continued"; readonly runUid: string; readonly explanation: string }
  | { readonly outcome: "failed"; readonly explanation: string };

/** A page of decisions, newest first, after a position. */
export type DecisionQuery = {
  readonly factoryUid: string;
  readonly automationUid?: string;
  /** The uid of an event or of its delivery. */
  readonly eventUid?: string;
  readonly after?: { readonly at: Date; readonly eventUid: string; readonly automationUid: string };
  readonly limit: number;
};

/** `eventUid`: the uid of the delivery, if the event is of one. */
export type EventRun = {
  readonly eventUid: string;
  readonly automationUid: string;
  readonly automationName: string;
  readonly runUid: string;
};

/**
 * Kinds of durable work: decide an event (payload: TriggerEvent), decide delayed decisions (DelayedRef), and start a
 * decision's run (DecisionRef).
 */
export const DECIDE = "automation.decide";
export const DECIDE_DELAYED = "automation.decide-delayed";
export const START = "automation.start";

/** How long decisions are retained, by whether they started a run. */
export const RETENTION_DAYS = { others: 30, fired: 365 } as const;

/** Evaluates a trigger; undefined if it is for other events. */
export type CheckTrigger = (
  trigger: TriggerPart,
) => (Omit<TriggerCheck, "trigger"> & { readonly isUndecided?: true }) | undefined;

/** `undecided`: no trigger matches, and one of them needs data that is not available yet. */
export type Verdict = Pick<Decision, "explanation" | "checks"> & {
  readonly outcome: "pending" | "undecided" | "not_matched" | "disabled" | "suppressed";
};

/**
 * Evaluates an automation for an event: one matching trigger is enough, and several start one run.
 * `veto` is the reason why it must not start although it matches. Returns undefined if no trigger is for such an event.
 */
export function evaluateAutomation(
  { rules, enabled, creatorLostAccess }: Pick<Automation, "rules" | "enabled" | "creatorLostAccess">,
  check: CheckTrigger,
  veto: string | undefined,
): Verdict | undefined {
  const found = rules.triggers.map(check);
  const checks = found.flatMap((result, index): TriggerCheck[] =>
    result ? [{ trigger: index, passed: result.passed, detail: shown(result.detail), failed: result.failed }] : [],
  );
  if (checks.length === 0) return undefined;
  const passed = checks.find((result) => result.passed);
  if (!passed && enabled && found.some((result) => result?.isUndecided))
    return {
      outcome: "undecided",
      checks,
      explanation: "A filter needs data that is not in the delivery; the code host is being queried.",
    };
  if (!passed)
    return {
      outcome: "not_matched",
      checks,
      explanation:
        checks.length === 1 ? checks[0]!.detail : `None of its ${checks.length} triggers for such events matches.`,
    };
  if (!enabled) {
    const explanation = creatorLostAccess
      ? `It matches, but the automation is disabled: ${CREATOR_LEFT}`
      : "It matches, but the automation is disabled.";
    return { outcome: "disabled", checks, explanation };
  }
  if (veto !== undefined) return { outcome: "suppressed", checks, explanation: veto };
  return { outcome: "pending", checks, explanation: passed.detail };
}

const DETAIL_CHARACTERS_MAX = 2_000;

/** Details quote external text: replaces characters that PostgreSQL cannot store and limits the length. */
const shown = (detail: string): string =>
  detail.replaceAll("\0", "\uFFFD").slice(0, DETAIL_CHARACTERS_MAX).toWellFormed();
