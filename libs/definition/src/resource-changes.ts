/** Every kind of resource that a definition can create, change or delete. */
export const RESOURCE_KINDS = [
  "factory",
  "agent",
  "runner",
  "skill",
  "automation",
  "webhook",
  "scorer",
  "benchmark",
] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

export const isResourceKind = (text: string): text is ResourceKind =>
  (RESOURCE_KINDS as readonly string[]).includes(text);

/** The change of one resource; the fields only for an update. */
export type ResourceChange<Kind extends ResourceKind> = {
  kind: Kind;
  name: string;
  action: "create" | "update" | "delete" | "unchanged";
  changedFields: string[];
};

/**
 * Returns the changes of the resources of one kind, by name. `fieldsChanged` returns the fields in which two resources
 * of one name differ.
 */
export function resourceChanges<Kind extends ResourceKind, T extends object>(
  kind: Kind,
  before: readonly T[],
  after: readonly T[],
  nameOf: (item: T) => string,
  fieldsChanged: (before: T, after: T) => string[],
): ResourceChange<Kind>[] {
  const old = new Map(before.map((item) => [nameOf(item), item]));
  const fresh = new Map(after.map((item) => [nameOf(item), item]));
  return [...new Set([...old.keys(), ...fresh.keys()])].sort().map((name) => {
    const [a, b] = [old.get(name), fresh.get(name)];
    if (!a || !b) return { kind, name, action: a ? "delete" : "create", changedFields: [] };
    const changedFields = fieldsChanged(a, b);
    return { kind, name, action: changedFields.length > 0 ? "update" : "unchanged", changedFields };
  });
}
