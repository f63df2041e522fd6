import { isMember, requireVerb, type Caller, type Verb } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, invalidArgument, notFound } from "@millwright/errors";
import type { KeyKind } from "../domain/credentials.ts";
import { causedBy } from "../events/facts.ts";
import { getAgent } from "../store/agent-store.ts";
import type { Credential } from "../store/credential-store.ts";
import type { Tx } from "../store/identity-db.ts";
import type { Key } from "../store/key-store.ts";
import { claimAccount } from "../store/team-store.ts";
import { issueKey, type KeyOrder } from "./issue-key.ts";

export type NewKey = {
  teamUid: string;
  name: string;
  kind: KeyKind;
  agentUid?: string | undefined;
  /** The caller's own uid, which is also the default. Keys of other people cannot be ordered. */
  userUid?: string | undefined;
  allTeams: boolean;
  scopes: readonly Verb[];
  expiresAt?: Date | undefined;
};

export type CreateKeyDeps = {
  tx: Tx;
  clock: Clock;
  /** Returns the credential of the calling key, which limits the new key. */
  credentialOf(caller: Caller): OwnKey | undefined;
};

type OwnKey = Pick<Credential, "user" | "allTeams" | "personal" | "scopes" | "expiresAt">;

/**
 * Creates a key for the caller, an agent (agent.manage) or workers (team.manage). A key of another person cannot be
 * created (docs/security.md).
 *
 * A new key has at most the scopes and the lifetime of the key that creates it, and has access to personal resources
 * only if that key has. There is one exception: the first unscoped key that a person creates with the key that a team
 * owner created together with the person's account. It gives the person the account. Creating an all-teams key requires
 * an all-teams key or a personal key without scopes. Platform administrators need an all-teams key, because only such a
 * key has their administration rights.
 *
 * Errors: team_not_found · not_authorized · agent_not_found · invalid_key.
 */
export async function createKey(
  deps: CreateKeyDeps,
  caller: Caller,
  input: NewKey,
): Promise<{ key: Key; text: string }> {
  if (!isMember(caller, input.teamUid)) throw notFound("team");
  assertHuman(caller);
  if (input.expiresAt && input.expiresAt <= deps.clock.now())
    throw invalid(`expires_at must be in the future (got ${input.expiresAt.toISOString()}).`);
  return issueKey(deps, causedBy(caller), {
    name: input.name,
    teamUid: input.teamUid,
    ...(await orderOf(deps, caller, input)),
  });
}

async function orderOf(
  deps: CreateKeyDeps,
  caller: Caller,
  input: NewKey,
): Promise<Omit<KeyOrder, "name" | "teamUid">> {
  const { teamUid, kind, agentUid, userUid, allTeams, scopes } = input;
  const limits = withinOwn(deps, caller, input);
  if (kind === "worker") {
    if (agentUid || userUid || allTeams || scopes.length > 0)
      throw invalid("A key of kind worker must not have user_uid, agent_uid, scopes or all_teams. Omit them.");
    requireVerb(caller, teamUid, "team.manage", "team");
    return { kind, expiresAt: limits.expiresAt };
  }
  if (agentUid) {
    if (userUid || allTeams)
      throw invalid(
        "A key is for an agent or for a user: send agent_uid without user_uid and all_teams, or omit agent_uid.",
      );
    requireVerb(caller, teamUid, "agent.manage", "team");
    return { kind, agentUid: (await getAgent(deps.tx.sql, [teamUid], agentUid, "FOR UPDATE")).uid, ...limits };
  }
  if (userUid !== undefined && userUid !== caller.principal.uid)
    throw refused(
      "A key of another person cannot be created: each person creates their own. Invite people with POST /team/{uid}/invitations.",
    );
  const own = deps.credentialOf(caller)!;
  const isWhole = limits.scopes?.length === 0 && limits.expiresAt === undefined;
  const personal = own.personal || (isWhole && (await claimAccount(deps.tx, caller.principal.uid, deps.clock.now())));
  if (allTeams && !mayReachAllTeams({ ...own, personal }))
    throw refused(
      "Creating an all-teams key requires a key of your own without scopes; platform administrators need an all-teams key.",
    );
  return { kind, userUid: caller.principal.uid, allTeams, personal, ...limits };
}

function withinOwn(
  deps: CreateKeyDeps,
  caller: Caller,
  { scopes, expiresAt }: NewKey,
): Pick<KeyOrder, "scopes" | "expiresAt"> {
  const own = deps.credentialOf(caller);
  const limits: readonly string[] = own?.scopes ?? [];
  const isWider = limits.length > 0 && scopes.some((scope) => !limits.includes(scope));
  const livesLonger = own?.expiresAt && expiresAt && expiresAt > own.expiresAt;
  if (!own || isWider || livesLonger)
    throw refused("The new key must not have more scopes or a later expires_at than the key that creates it.");
  return { scopes: scopes.length > 0 ? scopes : limits, expiresAt: expiresAt ?? own.expiresAt ?? undefined };
}

const mayReachAllTeams = ({ allTeams, personal, scopes, user }: OwnKey): boolean =>
  allTeams || (personal && (scopes ?? []).length === 0 && user?.platformAdmin !== true);

function assertHuman(caller: Caller): void {
  if (caller.principal.type === "user" && !caller.run) return;
  throw refused("Managing keys requires the key of a user; keys of agents and run tokens are not accepted.");
}

const refused = (message: string): DomainError =>
  new DomainError({ kind: "permission_denied", reason: "not_authorized", message });

const invalid = (message: string): DomainError => invalidArgument("invalid_key", message);
