import type { CodeHostEvent, FilterKey } from "./event.ts";
import { globMatches } from "./glob.ts";

/** The parts of a trigger that matching needs. */
export type CodeHostTrigger = {
  readonly provider: string;
  readonly event: string;
  /** All must match; an empty set matches everything. */
  readonly filter: Readonly<Record<string, { readonly in?: readonly string[]; readonly not_in?: readonly string[] }>>;
};

/** The reasons: one entry for the provider and the event, for the actor, and for every key of the filter. */
export type Check = { readonly key: string; readonly passed: boolean; readonly detail: string };

export type TriggerVerdict = {
  readonly matches: boolean;
  readonly checks: readonly Check[];
  /**
   * Everything else matches and these keys decide: fetch the event's pull requests from the code host
   * (`withAttributes`), then match again.
   */
  readonly needs: readonly FilterKey[];
};

/** Keys whose values are case-sensitive; names of people, teams, repositories, labels and states are not. */
const CASE_SENSITIVE: ReadonlySet<string> = new Set(["branches", "base_branches", "paths", "workflows"]);
const GLOBS: ReadonlySet<string> = new Set(["branches", "base_branches", "paths"]);
const SHOWN_VALUES_MAX = 10;

/**
 * Returns whether a trigger matches an event: provider and event are equal, the platform did not cause it, and every
 * key matches. A key matches if any value of `in` and no value of `not_in` is present.
 */
export function matches(trigger: CodeHostTrigger, event: CodeHostEvent): TriggerVerdict {
  const isItsEvent = trigger.provider === event.provider && trigger.event === event.event;
  const checks: Check[] = [
    {
      key: "event",
      passed: isItsEvent,
      detail: `It is ${event.provider} ${event.event}; the trigger matches ${trigger.provider} ${trigger.event}.`,
    },
  ];
  if (!isItsEvent) return { matches: false, checks, needs: [] };
  if (event.actor)
    checks.push({
      key: "actor",
      passed: !event.actor.isPlatform,
      detail: event.actor.isPlatform
        ? "The platform did it itself, which triggers nothing."
        : `Done by ${event.actor.login || "an unknown account"}.`,
    });
  const needs: FilterKey[] = [];
  for (const [key, set] of Object.entries(trigger.filter)) {
    const isOpen = (set.in ?? []).length === 0 && (set.not_in ?? []).length === 0;
    if (!isOpen && event.unresolved.includes(key as FilterKey)) needs.push(key as FilterKey);
    else
      checks.push(
        isOpen
          ? { key, passed: true, detail: "It has no values, so every event matches." }
          : checkKey(key as FilterKey, set, event),
      );
  }
  const matchesAll = checks.every(({ passed }) => passed);
  checks.push(
    ...needs.map((key) => ({
      key,
      passed: false,
      detail: "The payload does not contain it; the code host was not queried, or did not respond.",
    })),
  );
  return { matches: matchesAll && needs.length === 0, checks, needs: matchesAll ? needs : [] };
}

function checkKey(
  key: FilterKey,
  set: { readonly in?: readonly string[]; readonly not_in?: readonly string[] },
  event: CodeHostEvent,
): Check {
  const values = event.attributes[key] ?? [];
  const allValues = [...values, ...(event.carried[key] ?? [])];
  const isSame = sameness(key);
  const wanted = set.in ?? [];
  const unwanted = (set.not_in ?? []).find((excluded) => allValues.some((value) => isSame(excluded, value)));
  const found = wanted.find((accepted) => values.some((value) => isSame(accepted, value)));
  if (unwanted !== undefined)
    return { key, passed: false, detail: `${shown(allValues)} has ${unwanted}, which not_in names.` };
  if (wanted.length > 0 && found === undefined)
    return { key, passed: false, detail: `${shown(values)} has none of ${shown(wanted)}.` };
  return {
    key,
    passed: true,
    detail:
      found === undefined ? `${shown(allValues)} has nothing that not_in names.` : `${shown(values)} has ${found}.`,
  };
}

function sameness(key: FilterKey): (wanted: string, value: string) => boolean {
  if (GLOBS.has(key)) return globMatches;
  if (CASE_SENSITIVE.has(key)) return (wanted, value) => wanted === value;
  const plain = (text: string): string => (key === "mentioned" ? text.replace(/^@/, "") : text).toLowerCase();
  return (wanted, value) => plain(wanted) === plain(value);
}

const shown = (values: readonly string[]): string =>
  `[${values.slice(0, SHOWN_VALUES_MAX).join(", ")}${values.length > SHOWN_VALUES_MAX ? `, and ${values.length - SHOWN_VALUES_MAX} more` : ""}]`;
