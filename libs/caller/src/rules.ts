import { DomainError, notFound } from "@millwright/errors";
import type { TeamUid } from "@millwright/ids";
import type { Caller, Owner, Principal, TeamGrant, Verb } from "./caller.ts";

const grantOf = (caller: Caller, teamUid: string): TeamGrant | undefined =>
  caller.teams.find((team) => team.teamUid === teamUid);

/** Returns whether the caller is in the team, so may know what exists there. */
export const isMember = (caller: Caller, teamUid: string): boolean => grantOf(caller, teamUid) !== undefined;

/** Returns whether the caller may do `verb` in the team. */
export const can = (caller: Caller, teamUid: string, verb: Verb): boolean =>
  grantOf(caller, teamUid)?.verbs.includes(verb) ?? false;

/** Returns all teams in which the caller may do `verb`; the scope of a finder. */
export const teamsWith = (caller: Caller, verb: Verb): TeamUid[] =>
  caller.teams.filter((team) => team.verbs.includes(verb)).map((team) => team.teamUid);

/**
 * Returns the scope of a list: the active team if one is chosen, else all teams with the verb. An active team the
 * caller is not in gives no team, so that the list is empty, as for a random uid.
 */
export const teamsInView = (caller: Caller, verb: Verb): TeamUid[] =>
  teamsWith(caller, verb).filter((teamUid) => caller.activeTeamUid === undefined || teamUid === caller.activeTeamUid);

/** Returns whether the caller's credential gives access to the personal resources of this user. */
const isPerson = (caller: Caller, userUid: string): boolean =>
  caller.personal !== undefined && actorOf(caller).type === "user" && actorOf(caller).uid === userUid;

/** Returns whether the caller may do `verb` with resources of this owner. Key scopes apply to both kinds of owners. */
export const canAs = (caller: Caller, owner: Owner, verb: Verb): boolean =>
  owner.type === "team" ? can(caller, owner.uid, verb) : isPerson(caller, owner.uid) && caller.personal!.includes(verb);

/**
 * Returns the owners with whose resources the caller may do `verb`: teams, then the person; the scope of a finder. With
 * `teamUid` only that team.
 */
export function ownersWith(caller: Caller, verb: Verb, teamUid?: string): Owner[] {
  const { uid } = actorOf(caller);
  const teams = teamsWith(caller, verb)
    .filter((team) => teamUid === undefined || team === teamUid)
    .map((team): Owner => ({ type: "team", uid: team }));
  return teamUid === undefined && canAs(caller, { type: "user", uid }, verb)
    ? [...teams, { type: "user", uid }]
    : teams;
}

/**
 * Throws unless the caller may do `verb` in the team that owns `resource` (lower_snake, such as "run").
 *
 * Errors: <resource>_not_found for callers outside the team · not_authorized (permission_denied) for members without the
 * verb.
 */
export function requireVerb(caller: Caller, teamUid: string, verb: Verb, resource: string): void {
  if (!isMember(caller, teamUid)) throw notFound(resource);
  if (!can(caller, teamUid, verb)) throw missingVerb(verb, "in the team");
}

/**
 * As `requireVerb`, for a resource with either kind of owner.
 *
 * Errors: <resource>_not_found for callers without access to the owner · not_authorized (permission_denied) without the
 * verb.
 */
export function requireVerbAs(caller: Caller, owner: Owner, verb: Verb, resource: string): void {
  if (owner.type === "team") return requireVerb(caller, owner.uid, verb, resource);
  if (!isPerson(caller, owner.uid)) throw notFound(resource);
  if (!canAs(caller, owner, verb)) throw missingVerb(verb, "among the scopes of the key");
}

const missingVerb = (verb: Verb, where: string): DomainError =>
  new DomainError({
    kind: "permission_denied",
    reason: "not_authorized",
    message: `This requires the permission ${verb} ${where}.`,
    metadata: { verb },
  });

/**
 * Returns the team of a resource to create: the active team, else the caller's only one.
 *
 * Errors: team_not_found (an active team the caller is not in) · team_required (no team, or several and none chosen).
 */
export function chooseTeam(caller: Caller): TeamUid {
  if (caller.activeTeamUid !== undefined) {
    if (!isMember(caller, caller.activeTeamUid)) throw notFound("team");
    return caller.activeTeamUid;
  }
  const [only, ...others] = caller.teams;
  if (only && others.length === 0) return only.teamUid;
  throw new DomainError({
    kind: "invalid_argument",
    reason: "team_required",
    message: only
      ? "You are a member of several teams. Send the team's uid in the header X-Service-Team-Uid."
      : "You are not a member of any team. Accept an invitation first.",
  });
}

/**
 * Returns the principal for events and audit entries: the one on whose behalf a service acts, else the principal
 * itself.
 */
export const actorOf = (caller: Caller): Principal => caller.actsFor ?? caller.principal;

/** Returns whether a platform administrator calls; the token of a run never carries that right. */
export const isPlatformAdmin = (caller: Caller): boolean => caller.platformAdmin && !caller.run;

/** Throws `not_authorized` unless a platform administrator calls. `action`: the subject of the message's sentence. */
export function requirePlatformAdmin(caller: Caller, action: string): void {
  if (isPlatformAdmin(caller)) return;
  throw new DomainError({
    kind: "permission_denied",
    reason: "not_authorized",
    message: `${action} requires platform administrator rights.`,
  });
}

/**
 * Throws `service_caller_required` (permission_denied) unless a service calls, for itself or on behalf of a principal.
 */
export function requireServiceCaller(caller: Caller): void {
  if (caller.principal.type === "service") return;
  throw new DomainError({
    kind: "permission_denied",
    reason: "service_caller_required",
    message: "This call requires a service as the caller.",
  });
}

/** Returns the caller of a service that calls an upstream service, for itself or on behalf of a principal. */
export const serviceCaller = (
  name: string,
  requestId: string,
  actsFor?: Principal,
  teams: readonly TeamGrant[] = [],
): Caller => ({
  principal: { type: "service", uid: name },
  teams,
  platformAdmin: false,
  requestId,
  actsFor,
});
