import type { Caller } from "@millwright/caller";
import { DomainError } from "@millwright/errors";
import { getAgent } from "../store/agent-store.ts";
import type { Tx } from "../store/identity-db.ts";
import { getProfiles } from "./get-profiles.ts";

/**
 * Returns the uid of the member, given by e-mail address or uid, on whose behalf an agent acts with its API key.
 *
 * Errors: on_behalf_of_refused (permission_denied): the caller does not use an agent's API key, the agent has
 * on_behalf_of_enabled off, or the person is not a member of the team.
 */
export async function findPrincipal(
  tx: Tx,
  { principal, run }: Caller,
  teamUid: string,
  member: string,
): Promise<string> {
  if (principal.type !== "agent" || run)
    throw refused("Only with the API key of an agent are runs made on behalf of somebody.");
  const { config } = await getAgent(tx.sql, [teamUid], principal.uid);
  if (!config.on_behalf_of_enabled)
    throw refused("The agent may not act on behalf of others: its on_behalf_of_enabled is off.");
  const found = await getProfiles(tx, { uids: [member], emails: [member], teamUids: [teamUid] });
  const user = found.find(({ type }) => type === "user");
  if (!user) throw refused("on_behalf_of names no member of the team.");
  return user.uid;
}

const refused = (message: string): DomainError =>
  new DomainError({ kind: "permission_denied", reason: "on_behalf_of_refused", message });
