import type { JsonObject } from "@bufbuild/protobuf";
import { notFound } from "@millwright/errors";
import type { Role } from "../domain/roles.ts";
import type { Prisma, Team, User } from "../../gen/prisma/client.ts";
import type { Tx } from "./identity-db.ts";

export type { Team, User };

/** A membership of a person in a team. */
export type Member = {
  user: Pick<User, "uid" | "email" | "displayName">;
  role: Role;
  version: number;
  createdAt: Date;
};

export const insertTeam = (
  { prisma }: Tx,
  team: Pick<Team, "uid" | "name" | "createdAt" | "updatedAt">,
): Promise<Team> => prisma.team.create({ data: team });

/** Returns teams by uid, oldest first. */
export const listTeams = ({ prisma }: Tx, uids: readonly string[]): Promise<Team[]> =>
  prisma.team.findMany({ where: { uid: { in: [...uids] } }, orderBy: [{ createdAt: "asc" }, { uid: "asc" }] });

/** Returns a team. Errors: team_not_found. */
export async function getTeam({ prisma }: Tx, uid: string): Promise<Team> {
  const team = await prisma.team.findUnique({ where: { uid } });
  if (!team) throw notFound("team");
  return team;
}

/** The configuration layer and queue settings of a team. */
export type TeamLayer = Pick<Team, "uid" | "version" | "concurrencyLimit" | "queueWeight" | "queuePaused"> & {
  config: JsonObject;
};

/**
 * Returns the layer of a team. Hand-written SQL for speed, because the creation of each run executes it. Errors:
 * team_not_found.
 */
export async function getTeamLayer({ sql }: Tx, uid: string): Promise<TeamLayer> {
  const { rows } = await sql.query<TeamLayer>(
    `SELECT uid, version, concurrency_limit AS "concurrencyLimit", queue_weight AS "queueWeight", queue_paused AS "queuePaused", agent_defaults AS config FROM teams WHERE uid = $1::uuid`,
    [uid],
  );
  if (!rows[0]) throw notFound("team");
  return rows[0];
}

/** Locks the team row until the transaction ends, which serialises changes of a team, its members and its secrets. */
export async function lockTeam({ sql }: Tx, uid: string): Promise<void> {
  await sql.query("SELECT uid FROM teams WHERE uid = $1::uuid FOR UPDATE", [uid]);
}

export type TeamChanges = Partial<
  Pick<Team, "name" | "factoryBranches" | "metadataFilter" | "concurrencyLimit" | "queueWeight" | "queuePaused">
> & { agentDefaults?: Record<string, unknown> };

export const updateTeamRow = ({ prisma }: Tx, uid: string, changes: TeamChanges, now: Date): Promise<Team> =>
  prisma.team.update({
    where: { uid },
    data: { ...(changes as Prisma.TeamUpdateInput), version: { increment: 1 }, updatedAt: now },
  });

/** A user. `isUnused` is true if the account was never claimed and has neither a team nor a key. */
export type Account = { user: User; isUnused: boolean };

/** Returns the account of an e-mail address (any case). Creates it if there is none. */
export async function ensureUser(
  tx: Tx,
  user: Pick<User, "uid" | "email" | "displayName" | "createdAt">,
): Promise<Account> {
  const email = user.email.toLowerCase();
  await tx.sql.query(
    "INSERT INTO users (uid, email, display_name, created_at) VALUES ($1::uuid, $2, $3, $4::timestamptz) ON CONFLICT (email) DO NOTHING",
    [user.uid, email, user.displayName, user.createdAt],
  );
  return (await findAccount(tx, email))!;
}

/** Returns the account of an e-mail address in lower case. */
export async function findAccount({ prisma }: Tx, email: string): Promise<Account | undefined> {
  const row = await prisma.user.findUnique({
    where: { email },
    include: { _count: { select: { keys: true, memberships: true } } },
  });
  if (!row) return undefined;
  const { _count: count, ...user } = row;
  return { user, isUnused: user.claimedAt === null && count.keys === 0 && count.memberships === 0 };
}

/** Records that the person has a key with access to personal resources. Returns whether it is the first such key. */
export async function claimAccount({ prisma }: Tx, uid: string, now: Date): Promise<boolean> {
  return (await prisma.user.updateMany({ where: { uid, claimedAt: null }, data: { claimedAt: now } })).count > 0;
}

/** Inserts a membership. Keys that the user received while in no team are managed in this team from now on. */
export async function insertMember(
  { prisma }: Tx,
  teamUid: string,
  user: User,
  role: Role,
  now: Date,
  fromClaims = false,
): Promise<Member> {
  await prisma.membership.create({ data: { teamUid, userUid: user.uid, role, createdAt: now, fromClaims } });
  await prisma.apiKey.updateMany({ where: { userUid: user.uid, teamUid: null }, data: { teamUid } });
  return { user, role, version: 1, createdAt: now };
}

/** Returns a member of a team. Errors: member_not_found. */
export async function getMember({ prisma }: Tx, teamUid: string, userUid: string): Promise<Member> {
  const row = await prisma.membership.findUnique({
    where: { teamUid_userUid: { teamUid, userUid } },
    include: { user: true },
  });
  if (!row) throw notFound("member");
  return toMember(row);
}

/** Returns a page of a team's members, oldest first, after a position. */
export async function listMembers(
  { prisma }: Tx,
  teamUid: string,
  after: { createdAt: Date; uid: string } | undefined,
  limit: number,
): Promise<Member[]> {
  const rows = await prisma.membership.findMany({
    where: {
      teamUid,
      ...(after
        ? { OR: [{ createdAt: { gt: after.createdAt } }, { createdAt: after.createdAt, userUid: { gt: after.uid } }] }
        : {}),
    },
    include: { user: true },
    orderBy: [{ createdAt: "asc" }, { userUid: "asc" }],
    take: limit,
  });
  return rows.map(toMember);
}

/** A person's membership, and whether the claims of a sign-in provider gave it. */
export type OwnMembership = { teamUid: string; role: Role; version: number; fromClaims: boolean };

/** Returns the memberships of a user. */
export const membershipsOf = async ({ prisma }: Tx, userUid: string): Promise<OwnMembership[]> =>
  (await prisma.membership.findMany({ where: { userUid } })) as (OwnMembership & { role: Role })[];

/** Returns the roles of a user by team. */
export async function rolesOf({ prisma }: Tx, userUid: string): Promise<ReadonlyMap<string, Role>> {
  const rows = await prisma.membership.findMany({ where: { userUid } });
  return new Map(rows.map(({ teamUid, role }) => [teamUid, role as Role]));
}

export const countOwners = ({ prisma }: Tx, teamUid: string): Promise<number> =>
  prisma.membership.count({ where: { teamUid, role: "owner" } });

export async function updateRole({ prisma }: Tx, teamUid: string, userUid: string, role: Role): Promise<Member> {
  const row = await prisma.membership.update({
    where: { teamUid_userUid: { teamUid, userUid } },
    data: { role, version: { increment: 1 } },
    include: { user: true },
  });
  return toMember(row);
}

export async function deleteMember({ prisma }: Tx, teamUid: string, userUid: string): Promise<void> {
  await prisma.membership.delete({ where: { teamUid_userUid: { teamUid, userUid } } });
}

const toMember = (row: { user: User; role: string; version: number; createdAt: Date }): Member => ({
  user: row.user,
  role: row.role as Role,
  version: row.version,
  createdAt: row.createdAt,
});
