import { VERBS, type Caller, type TeamGrant } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { bestEffort, DomainError, type WarnLog } from "@millwright/errors";
import { as, isUuid, NIL_UUID, type TeamUid } from "@millwright/ids";
import { hashOfKey, RUN_TOKEN_PREFIX, SESSION_TOKEN_PREFIX } from "../domain/credentials.ts";
import { AGENT_VERBS, ROLE_VERBS, withinScopes } from "../domain/roles.ts";
import { recordUse, type Credential } from "../store/credential-store.ts";
import type { RunTokens } from "../clients/run-tokens.ts";
import type { Sessions } from "./sessions.ts";

/** A uid that no team has. A malformed team header is treated like a random uid. */
const NO_TEAM = as<TeamUid>(NIL_UUID);

const USE_RECORDED_EVERY_MS = 60_000;

export type AuthenticatorDeps = {
  /** Returns the current credential of a key's hash. */
  findCredential(hash: string): Promise<Credential | undefined>;
  readonly sql: Sql;
  clock: Clock;
  log: WarnLog;
  runTokens: RunTokens;
  sessions: Pick<Sessions, "authenticate">;
};

/**
 * Resolves credentials to callers. Keys and sessions take one read of the gateway's database, run tokens a lease check
 * by the orchestrator.
 */
export class Authenticator {
  readonly #deps: AuthenticatorDeps;
  readonly #credentials = new WeakMap<Caller, Credential>();

  constructor(deps: AuthenticatorDeps) {
    this.#deps = deps;
  }

  /** Returns the caller of a credential. Errors: key_invalid, session_ended, lease_lost (all unauthenticated). */
  async authenticate({
    bearer,
    teamUid,
    requestId,
  }: {
    bearer: string;
    teamUid: string | undefined;
    requestId: string;
  }): Promise<Caller> {
    if (bearer.startsWith(RUN_TOKEN_PREFIX))
      return this.#deps.runTokens.authenticate(bearer.slice(RUN_TOKEN_PREFIX.length), requestId);
    const credential = bearer.startsWith(SESSION_TOKEN_PREFIX)
      ? await this.#deps.sessions.authenticate(bearer)
      : await this.findKey(bearer);
    const caller = callerOfKey(credential, teamUid, requestId);
    this.#credentials.set(caller, credential);
    return caller;
  }

  /**
   * Returns the credential of a key. Errors: key_invalid (unknown, revoked, expired, or of a disabled agent; callers
   * cannot distinguish these).
   */
  async findKey(text: string): Promise<Credential> {
    const now = this.#deps.clock.now();
    const credential = await this.#deps.findCredential(hashOfKey(text));
    if (!credential)
      throw new DomainError({
        kind: "unauthenticated",
        reason: "key_invalid",
        message: "The API key is unknown, revoked or expired. Send a valid key as `Authorization: Bearer <key>`.",
      });
    if (now.getTime() - (credential.lastUsedAt?.getTime() ?? 0) > USE_RECORDED_EVERY_MS)
      await bestEffort("record the use of a key", this.#deps.log, () =>
        recordUse(this.#deps.sql, credential.keyUid, now),
      );
    return credential;
  }

  /** Returns the credential of a caller that this process authenticated, or undefined for run tokens. */
  credentialOf(caller: Caller): Credential | undefined {
    return this.#credentials.get(caller);
  }
}

/** Returns the verbs of a key in each team: those of its role there, limited by the key's scopes. */
export function grantsOf({ user, agent, scopes }: Credential): TeamGrant[] {
  const limits = scopes ?? [];
  if (agent) return [{ teamUid: as<TeamUid>(agent.teamUid), verbs: withinScopes(AGENT_VERBS, limits) }];
  return (user?.memberships ?? []).map(({ teamUid, role }) => ({
    teamUid: as<TeamUid>(teamUid),
    verbs: withinScopes(ROLE_VERBS[role], limits),
  }));
}

/**
 * Returns whether a key has platform administration rights. Only all-teams keys that administrators created themselves
 * have them, not keys that others created.
 */
export const isPlatformAdmin = ({ user, allTeams, scopes }: Credential): boolean =>
  user?.platformAdmin === true && allTeams && (scopes ?? []).length === 0;

function callerOfKey(credential: Credential, teamHeader: string | undefined, requestId: string): Caller {
  const { user, agent, keyUid } = credential;
  const teams = grantsOf(credential);
  if (agent)
    return {
      principal: { type: "agent", uid: agent.uid, displayName: agent.name },
      teams,
      activeTeamUid: as<TeamUid>(agent.teamUid),
      platformAdmin: false,
      requestId,
    };
  if (!user) return { principal: { type: "worker", uid: keyUid }, teams: [], platformAdmin: false, requestId };
  const active =
    teamHeader === undefined ? undefined : isUuid(teamHeader) ? as<TeamUid>(teamHeader.toLowerCase()) : NO_TEAM;
  return {
    principal: { type: "user", uid: user.uid, displayName: user.displayName, email: user.email },
    teams,
    personal: credential.personal ? withinScopes(VERBS, credential.scopes ?? []) : undefined,
    activeTeamUid: active,
    platformAdmin: isPlatformAdmin(credential),
    requestId,
  };
}
