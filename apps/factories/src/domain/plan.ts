import { resourceChanges, type Definition } from "@millwright/definition";
import { canonicalJson } from "@millwright/json";

/** One resource that an apply creates, changes or deletes. */
export type PlanItem = { kind: string; name: string; action: string; changedFields: string[] };

/**
 * The whole plan: what the owners said, and the deletions that follow from the version that serves where no owner said so
 * itself. Items of one resource are one item; by kind, then name.
 */
export function completePlan(plan: readonly PlanItem[], before: Definition | undefined, after: Definition): PlanItem[] {
  const gone = (kind: string, old: readonly string[], fresh: readonly string[]): PlanItem[] =>
    old.filter((name) => !fresh.includes(name)).map((name) => ({ kind, name, action: "delete", changedFields: [] }));
  const names = (items: readonly { name: string }[] | undefined) => (items ?? []).map(({ name }) => name);
  const paths = (items: readonly { path: string }[] | undefined) => (items ?? []).map(({ path }) => path);
  const merged = new Map<string, PlanItem>();
  for (const item of [
    ...plan,
    ...gone("agent", names(before?.agents), names(after.agents)),
    ...gone("runner", names(before?.runners), names(after.runners)),
    ...gone("skill", paths(before?.skills), paths(after.skills)),
    ...compared("automation", before?.automations, after.automations, ({ name }) => name),
    ...compared("webhook", before?.webhooks, after.webhooks, ({ name }) => name),
    ...compared("scorer", before?.scorers, after.scorers, ({ slug }) => slug),
    ...compared("benchmark", before?.benchmarks, after.benchmarks, ({ slug }) => slug),
  ]) {
    const key = `${item.kind} ${item.name}`;
    const known = merged.get(key);
    merged.set(key, known ? merge(known, item) : item);
  }
  return [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
}

const merge = (first: PlanItem, second: PlanItem): PlanItem => ({
  ...first,
  action: first.action === "unchanged" ? second.action : first.action,
  changedFields: [...new Set([...first.changedFields, ...second.changedFields])].sort(),
});

/** An older version may not have known the kind. */
const compared = <T extends object>(kind: string, before: readonly T[] = [], after: readonly T[], nameOf: (item: T) => string): PlanItem[] => resourceChanges(kind, before, after, nameOf, changedKeys);

function changedKeys(a: object, b: object): string[] {
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => canonicalJson(left[key] ?? null) !== canonicalJson(right[key] ?? null)).sort();
}

/** What applying a plan needs the right to do, besides applying: to change every resource it touches (spec/decisions). */
export const verbsFor = (plan: readonly PlanItem[]): ("agent.manage" | "factory.manage")[] => {
  const touched = plan.filter(({ action }) => action !== "unchanged");
  return [...new Set(touched.map(({ kind }) => (kind === "agent" ? "agent.manage" as const : "factory.manage" as const)))];
};
