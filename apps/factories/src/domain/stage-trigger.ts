import type { TriggerPart } from "@millwright/definition";
import type { CheckTrigger } from "./decision.ts";

/** A task that moved from one stage to another. */
export type StageMove = { readonly stage: string; readonly from: string; readonly ticketSource: string | null };

/** Evaluates triggers `factory`/`work_item_stage_changed`. Creating a task is not a change of its stage. */
export const checkStageMove =
  ({ stage, from, ticketSource }: StageMove): CheckTrigger =>
  ({ provider, event, filter }) => {
    if (provider !== "factory" || event !== "work_item_stage_changed") return undefined;
    const values = { stages: stage, from_stages: from, ticket_sources: ticketSource };
    const failed = Object.entries(values).flatMap(([key, value]) => (isInSet(filter[key], value) ? [] : [key]));
    if (failed.length === 0) return { passed: true, detail: `The task moved from ${from} to ${stage}.`, failed };
    const required = failed.map((key) => `${key} ${setText(filter[key])}`).join(", ");
    const ticket = failed.includes("ticket_sources") ? `, ticket source ${ticketSource ?? "none"}` : "";
    return {
      passed: false,
      detail: `The task moved from ${from} to ${stage}${ticket}. The filter requires ${required}.`,
      failed,
    };
  };

/** Returns the values that a filter requires and those that it excludes. */
const setText = ({ in: values = [], not_in: excluded = [] }: NonNullable<TriggerPart["filter"][string]> = {}): string =>
  [...(values.length > 0 ? [values.join(" or ")] : []), ...excluded.map((value) => `not ${value}`)].join(" and ");

/** Compares without case. An absent value passes only `not_in`. */
function isInSet(set: TriggerPart["filter"][string] | undefined, value: string | null): boolean {
  const isIn = (values: readonly string[] = []): boolean =>
    values.some((member) => member.toLowerCase() === value?.toLowerCase());
  return ((set?.in ?? []).length === 0 || isIn(set?.in)) && !isIn(set?.not_in);
}
