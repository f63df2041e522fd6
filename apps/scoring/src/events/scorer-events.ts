import type { NewEvent } from "@millwright/events";
import type { Scorer } from "../domain/scorer.ts";
import type { Origin } from "./origin.ts";

export const scorerCreated = (scorer: Omit<Scorer, "id">, origin: Origin): NewEvent =>
  scorerEvent("created", scorer, origin);
/** Returns the event of an update. `changed`: names of the changed public members. */
export const scorerUpdated = (scorer: Scorer, origin: Origin, changed: readonly string[]): NewEvent =>
  scorerEvent("updated", scorer, origin, { changed: [...changed] });
export const scorerDeleted = (scorer: Scorer, origin: Origin): NewEvent => scorerEvent("deleted", scorer, origin);

/**
 * Returns `millwright.scorer.created|updated|deleted.v1`. The payload is the state after the change, without prompts,
 * rules and labels.
 */
const scorerEvent = (
  change: "created" | "updated" | "deleted",
  scorer: Omit<Scorer, "id">,
  origin: Origin,
  more: { changed?: string[] } = {},
): NewEvent => ({
  type: `millwright.scorer.${change}.v1`,
  entity: "scorer",
  entityUid: scorer.uid,
  entityVersion: scorer.version,
  teamUid: scorer.teamUid,
  payload: {
    scorer_uid: scorer.uid,
    factory_uid: scorer.factoryUid,
    name: scorer.name,
    scorer_kind: scorer.kind,
    ...more,
  },
  ...origin,
});
