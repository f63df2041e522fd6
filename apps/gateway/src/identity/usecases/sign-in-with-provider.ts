import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import type { Logger } from "@millwright/telemetry";
import type { ProviderClaims } from "../clients/openid-provider.ts";
import { rolesOfClaim, valuesOfClaim, type ClaimRoles } from "../domain/claimed-roles.ts";
import type { Role } from "../domain/roles.ts";
import type { Cause } from "../events/facts.ts";
import type { Credential } from "../store/credential-store.ts";
import type { IdentityDb, Tx } from "../store/identity-db.ts";
import { listInvitations } from "../store/invitation-store.ts";
import {
  UNVERIFIED,
  findAccountToConnect,
  findTeamsByText,
  findUserOfIdentity,
  saveIdentity,
} from "../store/provider-identity-store.ts";
import { claimAccount, countOwners, ensureUser, lockTeam, membershipsOf, type User } from "../store/team-store.ts";
import { join, removeFromTeam, setRole } from "./manage-members.ts";

export type ProviderSignInDeps = {
  readonly db: IdentityDb;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  /** The claim with the values that give roles. */
  readonly teamsClaim: string;
  readonly roles: ClaimRoles;
};

type Deps = Omit<ProviderSignInDeps, "db"> & { readonly tx: Tx };

/**
 * Signs in the person whom a provider has authenticated, and returns the uid of their account. With `connectTo`, the
 * identity is connected to that account first. An identity is found by issuer and subject, never by its e-mail address
 * alone. Memberships that earlier claims gave are updated or removed.
 *
 * An account is created only if the claims give a role in a team or a team has invited the verified address. An existing
 * account with that address is connected if no key and no other identity gives access to it, because its creator might
 * be another person.
 *
 * Errors: no_team (permission_denied) · account_exists, identity_connected (conflict).
 */
export async function signInWithProvider(
  { db, ...deps }: ProviderSignInDeps,
  claims: ProviderClaims,
  { requestId, connectTo }: { requestId: string; connectTo?: string | undefined },
): Promise<string> {
  const wanted = rolesOfClaim(deps.roles, valuesOfClaim(claims.all, deps.teamsClaim));
  const { userUid, mayEnter } = await db.transaction(async (tx) => {
    const teams = await findTeamsByText(tx.sql, [...wanted.keys()]);
    const roles = new Map<string, Role>();
    for (const [text, role] of wanted) {
      const uid = teams.get(text);
      if (uid) roles.set(uid, role);
    }
    if (roles.size < wanted.size)
      deps.log.warn(
        { component: "sign-in", count: wanted.size - roles.size },
        "teams of MILLWRIGHT_OIDC_TEAMS do not exist, or several have the name: roles not given",
      );
    const uid = await accountOf({ ...deps, tx }, claims, roles.size > 0, connectTo);
    await saveIdentity(tx, uid, claims, deps.clock.now());
    await synchroniseTeams({ ...deps, tx }, uid, roles, { actor: { type: "user", uid }, requestId });
    const hasTeam = (await membershipsOf(tx, uid)).length > 0;
    const isWelcome = hasTeam || connectTo !== undefined || (await isInvited({ ...deps, tx }, claims.verifiedEmail));
    return { userUid: uid, mayEnter: isWelcome };
  });
  if (!mayEnter) throw noTeam(claims); // after the commit, which may have removed the last membership
  return userUid;
}

async function accountOf(
  deps: Deps,
  claims: ProviderClaims,
  hasRole: boolean,
  connectTo: string | undefined,
): Promise<string> {
  const { tx, clock } = deps;
  const known = await findUserOfIdentity(tx, claims);
  if (known !== undefined && connectTo !== undefined && known !== connectTo)
    throw conflict("identity_connected", "This account of the provider signs in another person of this platform.");
  const uid = known ?? connectTo;
  if (uid !== undefined) return uid;
  const email = claims.verifiedEmail;
  const account = email === undefined ? undefined : await findAccountToConnect(tx, email);
  if (account?.hasKey || account?.hasIdentity)
    throw conflict(
      "account_exists",
      `${email} has an account already. Sign in with an API key of the account, and connect it in the account menu.`,
    );
  if (!account && !hasRole && !(await isInvited(deps, email))) throw noTeam(claims);
  const user = account ?? (await createAccount(deps, claims));
  await claimAccount(tx, user.uid, clock.now());
  return user.uid;
}

/** Without a verified address, the account gets one that no one can have, and that no one can be invited by. */
async function createAccount({ tx, clock }: Deps, { verifiedEmail, name }: ProviderClaims): Promise<User> {
  const uid = newUid();
  const email = verifiedEmail ?? `${uid}${UNVERIFIED}`;
  const displayName = name?.slice(0, NAME_LENGTH_MAX) ?? email;
  return (await ensureUser(tx, { uid, email, displayName, createdAt: clock.now() })).user;
}

const NAME_LENGTH_MAX = 200;

async function isInvited({ tx, clock }: Deps, email: string | undefined): Promise<boolean> {
  return email !== undefined && (await listInvitations(tx, { email }, clock.now())).length > 0;
}

/** Makes the memberships that claims gave equal to `roles`. Others, such as by invitation, stay as they are. */
async function synchroniseTeams(
  deps: Deps,
  userUid: string,
  roles: ReadonlyMap<string, Role>,
  by: Cause,
): Promise<void> {
  const { tx, log } = deps;
  const before = new Map((await membershipsOf(tx, userUid)).map((each) => [each.teamUid, each]));
  const user = await tx.prisma.user.findUniqueOrThrow({ where: { uid: userUid } });
  const changed = new Set([...roles.keys(), ...[...before.values()].flatMap((m) => (m.fromClaims ? [m.teamUid] : []))]);
  for (const teamUid of [...changed].toSorted()) {
    const [current, role] = [before.get(teamUid), roles.get(teamUid)];
    if (current && (!current.fromClaims || current.role === role)) continue;
    await lockTeam(tx, teamUid);
    if (!current) await join(deps, by, { teamUid, user, role: role!, fromClaims: true });
    else if (current.role === "owner" && (await countOwners(tx, teamUid)) === 1)
      log.warn(
        { component: "sign-in", teamUid, principalUid: userUid },
        "the claims no longer give the last owner of a team that role; the role is unchanged",
      );
    else if (role) await setRole(deps, by, { teamUid, userUid, role });
    else await removeFromTeam(deps, by, { teamUid, userUid, version: current.version });
  }
}

/**
 * Returns the uid of the account to which the caller may connect an identity. Errors: not_authorized, unless the caller
 * has all rights of a person, which a key that another person created never has.
 */
export function accountToConnect({ principal }: Caller, credential: Credential | undefined): string {
  if (principal.type === "user" && credential?.personal && (credential.scopes ?? []).length === 0) return principal.uid;
  throw new DomainError({
    kind: "permission_denied",
    reason: "not_authorized",
    message:
      "Connecting a provider requires a key without scopes that you created yourself: `millwright key create NAME`.",
  });
}

const noTeam = ({ verifiedEmail }: ProviderClaims): DomainError =>
  new DomainError({
    kind: "permission_denied",
    reason: "no_team",
    message:
      verifiedEmail === undefined
        ? "You are in no team. Your provider has not verified an e-mail address of yours, so that a team cannot invite you by it."
        : `You are in no team. Ask an owner of a team to invite ${verifiedEmail}, then sign in again.`,
  });

const conflict = (reason: string, message: string): DomainError =>
  new DomainError({ kind: "conflict", reason, message });
