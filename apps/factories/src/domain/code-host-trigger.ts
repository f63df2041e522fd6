import { matches, type CodeHostEvent } from "@millwright/code-host-events";
import type { TriggerPart } from "@millwright/definition";
import type { CheckTrigger } from "./decision.ts";
import type { Repository } from "./factory.ts";

/**
 * Triggers of code hosts; one delivery can tell of several events, of which one is enough. Undefined: it tells of none that the
 * trigger is about. A factory hears of its own repositories, or of all when it names none.
 */
export const checkCodeHostEvents = (events: readonly CodeHostEvent[], repositories: readonly Repository[]): CheckTrigger => (trigger) => {
  const heard = events.filter(({ provider, event }) => provider === trigger.provider && event === trigger.event);
  if (heard.length === 0) return undefined;
  const judged = heard.map((event) => judgeEvent(trigger, event, repositories));
  return judged.find(({ passed }) => passed) ?? judged[0]!;
};

function judgeEvent(trigger: TriggerPart, event: CodeHostEvent, repositories: readonly Repository[]): NonNullable<ReturnType<CheckTrigger>> {
  if (!isOwn(event, repositories)) return { passed: false, detail: `${event.repository} is none of the factory's repositories.`, failed: ["repositories"] };
  const verdict = matches(trigger, event);
  const failed = verdict.checks.filter(({ passed }) => !passed);
  if (verdict.matches) return { passed: true, detail: `Every filter holds for ${event.event} of ${event.repository}.`, failed: [] };
  return { passed: false, detail: failed.map(({ key, detail }) => `${key}: ${detail}`).join(" "), failed: failed.map(({ key }) => key) };
}

export const isOwn = ({ repository }: CodeHostEvent, repositories: readonly Repository[]): boolean =>
  repositories.length === 0 || repositories.some(({ owner, repo }) => `${owner}/${repo}`.toLowerCase() === repository.toLowerCase());

/** Whether a filter of any trigger asks what the payload leaves out, and all else holds. */
export const isUntold = (event: CodeHostEvent, triggers: readonly TriggerPart[]): boolean => triggers.some((trigger) => matches(trigger, event).needs.length > 0);
