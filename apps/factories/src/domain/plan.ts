import type { Verb } from "@millwright/caller";
import { isResourceKind, resourceChanges, type Definition, type ResourceKind } from "@millwright/definition";
import { DomainError } from "@millwright/errors";
import { canonicalJson } from "@millwright/json";

/** One resource that an apply creates, changes or deletes. */
export type PlanItem = { kind: ResourceKind; name: string; action: string; changedFields: string[] };

/**
 * Reads a plan item of an owner. An apply needs the right to change every kind of resource that it touches, so a kind
 * without a known right is refused.
 *
 * Errors: resource_kind_unknown (internal).
 */
export function readPlanItem({
  kind,
  name,
  action,
  changedFields,
}: Omit<PlanItem, "kind"> & { kind: string }): PlanItem {
  if (!isResourceKind(kind)) {
    throw new DomainError({
      kind: "internal",
      reason: "resource_kind_unknown",
      message: `The plan has a resource of the unknown kind "${kind}".`,
    });
  }
  return { kind, name, action, changedFields };
}

/**
 * Returns the complete plan: what the owners reported, and the deletions that follow from the active version. Items of
 * the same resource are merged; sorted by kind, then name.
 */
export function completePlan(plan: readonly PlanItem[], before: Definition | undefined, after: Definition): PlanItem[] {
  const deletions = (kind: ResourceKind, old: readonly string[], fresh: readonly string[]): PlanItem[] =>
    old.filter((name) => !fresh.includes(name)).map((name) => ({ kind, name, action: "delete", changedFields: [] }));
  const names = (items: readonly { name: string }[] | undefined) => (items ?? []).map(({ name }) => name);
  const paths = (items: readonly { path: string }[] | undefined) => (items ?? []).map(({ path }) => path);
  const merged = new Map<string, PlanItem>();
  for (const item of [
    ...plan,
    ...deletions("agent", names(before?.agents), names(after.agents)),
    ...deletions("runner", names(before?.runners), names(after.runners)),
    ...deletions("skill", paths(before?.skills), paths(after.skills)),
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

/** The older version may not have the kind. */
const compared = <T extends object>(
  kind: ResourceKind,
  before: readonly T[] = [],
  after: readonly T[],
  nameOf: (item: T) => string,
): PlanItem[] => resourceChanges(kind, before, after, nameOf, changedKeys);

function changedKeys(a: object, b: object): string[] {
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .filter((key) => canonicalJson(left[key] ?? null) !== canonicalJson(right[key] ?? null))
    .sort();
}

/** The right that the API requires for a kind of resource. A new kind does not compile without its right. */
const VERB_OF_KIND: Readonly<Record<ResourceKind, Verb>> = {
  factory: "factory.manage",
  agent: "agent.manage",
  runner: "factory.manage",
  skill: "factory.manage",
  automation: "factory.manage",
  webhook: "webhook.manage",
  scorer: "factory.manage",
  benchmark: "factory.manage",
};

/** Returns the rights that a plan requires besides `source.apply`: to change every resource that it touches. */
export const verbsFor = (plan: readonly PlanItem[]): Verb[] => [
  ...new Set(plan.filter(({ action }) => action !== "unchanged").map(({ kind }) => VERB_OF_KIND[kind])),
];
