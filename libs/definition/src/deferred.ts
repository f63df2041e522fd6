import type { Definition } from "./definition.ts";

/** A display name of an object in a connected service; it is resolved when the definition is applied. */
export type DeferredResolution = { readonly path: string; readonly field: string; readonly kind: string };

/** Which filter values are such names, by provider; the others are ids or constants. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  linear: ["teams", "labels", "projects", "states", "assignees", "mentioned", "creators"],
  slack: ["channels", "users", "item_users"],
};

/** Returns the names in a definition that are resolved when it is applied. */
export const deferredResolutions = ({ automations }: Definition): DeferredResolution[] =>
  automations.flatMap(({ name, triggers }) =>
    triggers.flatMap(({ provider, filter }, index) =>
      Object.keys(filter)
        .filter((key) => NAMED[provider]?.includes(key))
        .map((key) => ({
          path: `automations/${name}/automation.md`,
          field: `triggers[${index}].filter.${key}`,
          kind: `${provider}_name_alias`,
        })),
    ),
  );
