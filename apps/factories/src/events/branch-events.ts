import type { NewEvent } from "@millwright/events";
import type { TrackedBranch } from "../domain/branch.ts";
import type { Origin } from "./origin.ts";

/**
 * Events of tracked branches. Payload: `{factory_uid, name, is_production}`, and for updates the registered head and
 * the changed members.
 */
export const branchCreated = (branch: TrackedBranch, origin: Origin): NewEvent => newEvent("created", branch, origin);
export const branchUpdated = (branch: TrackedBranch, origin: Origin, changed: readonly string[]): NewEvent =>
  newEvent("updated", branch, origin, { registered_head_sha: branch.registeredHeadSha, changed: [...changed] });
/** Tracking ended. */
export const branchUntracked = (branch: TrackedBranch, origin: Origin): NewEvent =>
  newEvent("untracked", branch, origin);

const newEvent = (
  past: string,
  branch: TrackedBranch,
  origin: Origin,
  more: { registered_head_sha?: string | null; changed?: string[] } = {},
): NewEvent => ({
  type: `millwright.branch.${past}.v1`,
  entity: "branch",
  entityUid: branch.uid,
  entityVersion: branch.version,
  teamUid: branch.teamUid,
  ...origin,
  payload: { factory_uid: branch.factoryUid, name: branch.name, is_production: branch.isProduction, ...more },
});
