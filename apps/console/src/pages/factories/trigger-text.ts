import type { components } from "../../gen/api.ts";
import { STAGES } from "../../ui/task-stages.ts";

type Trigger = components["schemas"]["AutomationTrigger"];
export type Filter = Readonly<Record<string, unknown>>;

const EVENTS: Readonly<Record<string, string>> = {
  "webhook received": "webhook delivery",
  "schedule cron_fired": "schedule",
  "factory work_item_stage_changed": "task changes its stage",
};
const STAGE_NAMES: ReadonlyMap<string, string> = new Map(STAGES);
const STAGE = new RegExp(String.raw`\b(?:${STAGES.map(([stage]) => stage).join("|")})\b`, "g");

export const isObject = (value: unknown): value is Filter =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the values that a key requires: `["a"]` or `{"in": ["a"]}`. */
export function valuesOf(filter: Filter, key: string): string[] {
  const value = filter[key];
  const values = isObject(value) ? value["in"] : value;
  return Array.isArray(values) ? values.filter((each) => typeof each === "string") : [];
}

/** Returns what an event is, in words. Events of code hosts have the names of the API. */
export const eventText = (provider: string, event: string): string =>
  EVENTS[`${provider} ${event}`] ?? `${provider} ${event}`;

/** Returns a text with the stages of tasks as the board names them: "Review" for "REVIEW". */
export const withStageNames = (text: string): string => text.replaceAll(STAGE, (stage) => STAGE_NAMES.get(stage)!);

/** Returns when a trigger starts runs: "task changes its stage (from Triage; to Spec or Review)". */
export function triggerText({ provider, event, schedule, filter = {} }: Trigger): string {
  const stagesOf = (word: string, key: string): string[] => {
    const values = provider === "factory" ? valuesOf(filter, key) : [];
    const names = values.map((value) => withStageNames(value.toUpperCase()));
    return names.length === 0 ? [] : [`${word} ${names.join(" or ")}`];
  };
  const details = [
    ...(schedule ? [schedule.cron] : []),
    ...stagesOf("from", "from_stages"),
    ...stagesOf("to", "stages"),
  ];
  return `${eventText(provider, event)}${details.length > 0 ? ` (${details.join("; ")})` : ""}`;
}
