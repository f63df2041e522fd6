import type { Manifest } from "./render.ts";

/** Kinds whose objects store data: an upgrade that drops one deletes the data, or leaves it behind. */
const STORES_DATA = new Set(["StatefulSet", "PersistentVolumeClaim"]);

/** Returns what Kubernetes refuses to change in an object, undefined for kinds without such fields. */
function immutableFields({ kind, spec, ...rest }: Manifest): unknown {
  switch (kind) {
    case "Deployment":
      return { selector: spec.selector };
    case "StatefulSet":
      return {
        selector: spec.selector,
        serviceName: spec.serviceName,
        volumeClaimTemplates: spec.volumeClaimTemplates,
      };
    case "Service":
      return { clusterIP: spec.clusterIP };
    case "PersistentVolumeClaim":
      return spec;
    case "RoleBinding":
      return rest["roleRef"];
    default:
      return undefined;
  }
}

export type ImmutableFields = Readonly<Record<string, unknown>>;

/** Returns the immutable fields of objects by kind and name. */
export const immutableFieldsOf = (manifests: readonly Manifest[]): ImmutableFields =>
  Object.fromEntries(
    manifests.flatMap((manifest) => {
      const fields = immutableFields(manifest);
      return fields === undefined ? [] : [[`${manifest.kind}/${manifest.metadata.name}`, fields]];
    }),
  );

/** Returns the objects that an upgrade between releases cannot change, and those whose data it would lose. */
export function upgradeFaults(before: ImmutableFields, after: ImmutableFields): string[] {
  return Object.entries(before).flatMap(([name, fields]) => {
    if (!(name in after)) return STORES_DATA.has(name.split("/")[0]!) ? [`${name} is removed`] : [];
    return JSON.stringify(sorted(after[name])) === JSON.stringify(sorted(fields))
      ? []
      : [`${name} has immutable changes`];
  });
}

const sorted = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(
        Object.entries(value)
          .toSorted(([a], [b]) => a.localeCompare(b))
          .map(([name, member]) => [name, sorted(member)]),
      )
    : value;
