import { matches, type CodeHostEvent } from "@millwright/code-host-events";
import type { TriggerPart } from "@millwright/definition";
import type { CheckTrigger } from "./decision.ts";
import type { Repository } from "./factory.ts";

/**
 * Triggers of code hosts; one delivery can tell of several events, of which one is enough. Undefined: it tells of none that the
 * trigger is about. A factory hears of its own repositories, or of all when it names none. `unanswered`: the events for which the
 * code host has not answered yet; a filter that needs its answer is undecided.
 */
export const checkCodeHostEvents =
  (
    events: readonly CodeHostEvent[],
    repositories: readonly Repository[],
    unanswered: ReadonlySet<CodeHostEvent> = new Set(),
  ): CheckTrigger =>
  (trigger) => {
    const heard = events.filter(({ provider, event }) => provider === trigger.provider && event === trigger.event);
    if (heard.length === 0) return undefined;
    const judged = heard.map((event) => judgeEvent(trigger, event, repositories, unanswered.has(event)));
    return judged.find(({ passed }) => passed) ?? judged.find(({ isUndecided }) => isUndecided) ?? judged[0]!;
  };

function judgeEvent(
  trigger: TriggerPart,
  event: CodeHostEvent,
  repositories: readonly Repository[],
  isUnanswered: boolean,
): NonNullable<ReturnType<CheckTrigger>> {
  if (!isOwn(event, repositories))
    return {
      passed: false,
      detail: `${event.repository} is none of the factory's repositories.`,
      failed: ["repositories"],
    };
  const verdict = matches(trigger, event);
  const failed = verdict.checks.filter(({ passed }) => !passed);
  if (verdict.matches)
    return { passed: true, detail: `Every filter holds for ${event.event} of ${event.repository}.`, failed: [] };
  return {
    passed: false,
    detail: failed.map(({ key, detail }) => `${key}: ${detail}`).join(" "),
    failed: failed.map(({ key }) => key),
    ...(isUnanswered && verdict.needs.length > 0 && { isUndecided: true as const }),
  };
}

export const isOwn = ({ repository }: CodeHostEvent, repositories: readonly Repository[]): boolean =>
  repositories.length === 0 ||
  repositories.some(({ owner, repo }) => `${owner}/${repo}`.toLowerCase() === repository.toLowerCase());

/** Whether a filter of any trigger asks what the payload leaves out, and all else holds. */
export const isUntold = (event: CodeHostEvent, triggers: readonly TriggerPart[]): boolean =>
  triggers.some((trigger) => matches(trigger, event).needs.length > 0);
