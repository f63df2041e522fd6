import { matches, type CodeHostEvent } from "@millwright/code-host-events";
import type { TriggerPart } from "@millwright/definition";
import type { CheckTrigger } from "./decision.ts";
import type { Repository } from "./factory.ts";

/**
 * Evaluates triggers of code hosts; a delivery can contain several events, of which one match is enough. Returns
 * undefined if no event is of the trigger's kind. A factory receives events of its own repositories, or of all if it
 * names none. `incomplete`: events for which the code host has not been queried successfully yet; a filter that needs
 * its response is undecided.
 */
export const checkCodeHostEvents =
  (
    events: readonly CodeHostEvent[],
    repositories: readonly Repository[],
    incomplete: ReadonlySet<CodeHostEvent> = new Set(),
  ): CheckTrigger =>
  (trigger) => {
    const relevant = events.filter(({ provider, event }) => provider === trigger.provider && event === trigger.event);
    if (relevant.length === 0) return undefined;
    const results = relevant.map((event) => evaluateEvent(trigger, event, repositories, incomplete.has(event)));
    return results.find(({ passed }) => passed) ?? results.find(({ isUndecided }) => isUndecided) ?? results[0]!;
  };

function evaluateEvent(
  trigger: TriggerPart,
  event: CodeHostEvent,
  repositories: readonly Repository[],
  isIncomplete: boolean,
): NonNullable<ReturnType<CheckTrigger>> {
  if (!isOwn(event, repositories))
    return {
      passed: false,
      detail: `${event.repository} is not a repository of the factory.`,
      failed: ["repositories"],
    };
  const verdict = matches(trigger, event);
  const failed = verdict.checks.filter(({ passed }) => !passed);
  if (verdict.matches)
    return { passed: true, detail: `Every filter matches ${event.event} of ${event.repository}.`, failed: [] };
  return {
    passed: false,
    detail: failed.map(({ key, detail }) => `${key}: ${detail}`).join(" "),
    failed: failed.map(({ key }) => key),
    ...(isIncomplete && verdict.needs.length > 0 && { isUndecided: true as const }),
  };
}

export const isOwn = ({ repository }: CodeHostEvent, repositories: readonly Repository[]): boolean =>
  repositories.length === 0 ||
  repositories.some(({ owner, repo }) => `${owner}/${repo}`.toLowerCase() === repository.toLowerCase());

/** Returns whether a filter of any trigger needs data that is not in the payload, and all other filters match. */
export const needsCodeHost = (event: CodeHostEvent, triggers: readonly TriggerPart[]): boolean =>
  triggers.some((trigger) => matches(trigger, event).needs.length > 0);
