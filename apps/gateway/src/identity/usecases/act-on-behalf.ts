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
  if (principal.type !== "agent" || run) throw refused("on_behalf_of requires the API key of an agent.");
  const { config } = await getAgent(tx.sql, [teamUid], principal.uid);
  if (!config.on_behalf_of_enabled)
    throw refused("This agent may not use on_behalf_of. Set on_behalf_of_enabled in its configuration.");
  const found = await getProfiles(tx, { uids: [member], emails: [member], teamUids: [teamUid] });
  const user = found.find(({ type }) => type === "user");
  if (!user) throw refused(`on_behalf_of must be the e-mail address or uid of a member of the team (got "${member}").`);
  return user.uid;
}

const refused = (message: string): DomainError =>
  new DomainError({ kind: "permission_denied", reason: "on_behalf_of_refused", message });
