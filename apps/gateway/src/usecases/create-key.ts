import { isMember, requireVerb, type Caller, type Verb } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, invalidArgument, notFound } from "@millwright/errors";
import type { KeyKind } from "../domain/credentials.ts";
import { causedBy } from "../events/facts.ts";
import { getAgent } from "../store/agent-store.ts";
import type { Credential } from "../store/credential-store.ts";
import type { Tx } from "../store/identity-db.ts";
import type { Key } from "../store/key-store.ts";
import { getMember } from "../store/team-store.ts";
import { issueKey, type KeyOrder } from "./issue-key.ts";

export type NewKey = {
  teamUid: string;
  name: string;
  kind: KeyKind;
  agentUid?: string | undefined;
  /** Whose key; default: the caller's own. */
  userUid?: string | undefined;
  allTeams: boolean;
  scopes: readonly Verb[];
  expiresAt?: Date | undefined;
};

export type CreateKeyDeps = {
  tx: Tx;
  clock: Clock;
  /** What the calling key itself is limited to. */
  credentialOf(caller: Caller): Pick<Credential, "allTeams" | "scopes" | "expiresAt"> | undefined;
};

/**
 * Orders a key for oneself, an agent (agent.manage), workers or another member (both team.manage).
 *
 * Only one's own key may be good for all one's teams, and only when ordered with such a key: nobody gets into a team
 * through a key they made for somebody else. Every key stays within the scopes and the life of the one that ordered it.
 *
 * Errors: team_not_found · not_authorized · agent_not_found · member_not_found · invalid_key.
 */
export async function createKey(deps: CreateKeyDeps, caller: Caller, input: NewKey): Promise<{ key: Key; text: string }> {
  if (!isMember(caller, input.teamUid)) throw notFound("team");
  assertHuman(caller);
  if (input.expiresAt && input.expiresAt <= deps.clock.now()) throw invalid("expires_at must lie in the future.");
  return issueKey(deps, causedBy(caller), { name: input.name, teamUid: input.teamUid, ...(await orderOf(deps, caller, input)) });
}

async function orderOf(deps: CreateKeyDeps, caller: Caller, input: NewKey): Promise<Omit<KeyOrder, "name" | "teamUid">> {
  const { teamUid, kind, agentUid, userUid, allTeams, scopes } = input;
  const { allTeams: reach, ...limits } = withinOwn(deps, caller, input);
  if (kind === "worker") {
    if (agentUid || userUid || allTeams || scopes.length > 0) throw invalid("A worker key has no user, agent, scopes or all_teams.");
    requireVerb(caller, teamUid, "team.manage", "team");
    return { kind, ...(limits.expiresAt && { expiresAt: limits.expiresAt }) };
  }
  if (agentUid) {
    if (userUid || allTeams) throw invalid("A key belongs to an agent or to a user, and an agent has one team.");
    requireVerb(caller, teamUid, "agent.manage", "team");
    return { kind, agentUid: (await getAgent(deps.tx.sql, [teamUid], agentUid, "FOR UPDATE")).uid, ...limits };
  }
  if (userUid === undefined || userUid === caller.principal.uid) return { kind, userUid: caller.principal.uid, allTeams: reach, ...limits };
  if (allTeams) throw invalid("all_teams is for one's own keys only.");
  requireVerb(caller, teamUid, "team.manage", "team");
  return { kind, userUid: (await getMember(deps.tx, teamUid, userUid)).user.uid, ...limits };
}

function withinOwn(deps: CreateKeyDeps, caller: Caller, { allTeams, scopes, expiresAt }: NewKey): Pick<KeyOrder, "allTeams" | "scopes" | "expiresAt"> {
  const own = deps.credentialOf(caller);
  const limits: readonly string[] = own?.scopes ?? [];
  const isWider = limits.length > 0 && scopes.some((scope) => !limits.includes(scope));
  const livesLonger = own?.expiresAt && expiresAt && expiresAt > own.expiresAt;
  if (!own || isWider || livesLonger || (allTeams && !own.allTeams))
    throw new DomainError({ kind: "permission_denied", reason: "not_authorized", message: "A key cannot order a key that may do more than itself." });
  const end = expiresAt ?? own.expiresAt ?? undefined;
  return { allTeams, scopes: scopes.length > 0 ? scopes : limits, ...(end ? { expiresAt: end } : {}) };
}

function assertHuman(caller: Caller): void {
  if (caller.principal.type === "user" && !caller.run) return;
  throw new DomainError({ kind: "permission_denied", reason: "not_authorized", message: "Only people manage keys." });
}

const invalid = (message: string): DomainError => invalidArgument("invalid_key", message);
