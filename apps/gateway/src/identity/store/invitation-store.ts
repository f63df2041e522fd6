import { notFound } from "@millwright/errors";
import type { Role } from "../domain/roles.ts";
import type { Prisma } from "../../gen/prisma/client.ts";
import type { Tx } from "./identity-db.ts";

const SHOWN = { team: true, inviter: true } as const;

type Row = Prisma.InvitationGetPayload<{ include: typeof SHOWN }>;

/** An invitation with its team and its inviter. */
export type Invitation = Omit<Row, "role"> & { role: Role };

/** Deletes a team's expired invitations. */
export async function deleteExpiredInvitations({ prisma }: Tx, teamUid: string, now: Date): Promise<void> {
  await prisma.invitation.deleteMany({ where: { teamUid, expiresAt: { lte: now } } });
}

/** Inserts an invitation. Returns undefined if the team has one for the address. */
export async function insertInvitation(
  { prisma }: Tx,
  invitation: Prisma.InvitationUncheckedCreateInput,
): Promise<Invitation | undefined> {
  const { teamUid, email } = invitation;
  if (await prisma.invitation.findUnique({ where: { teamUid_email: { teamUid, email } } })) return undefined;
  return (await prisma.invitation.create({ data: invitation, include: SHOWN })) as Invitation;
}

/** Returns the unexpired invitations of a team or of a person, newest first. */
export async function listInvitations(
  { prisma }: Tx,
  whose: { teamUid: string } | { email: string },
  now: Date,
): Promise<Invitation[]> {
  const where = { ...whose, expiresAt: { gt: now } };
  return (await prisma.invitation.findMany({
    where,
    include: SHOWN,
    orderBy: [{ createdAt: "desc" }, { uid: "desc" }],
  })) as Invitation[];
}

/** Returns an unexpired invitation. Errors: invitation_not_found (absent, expired, or of another team or person). */
export async function getInvitation(
  { prisma }: Tx,
  whose: { uid: string } & ({ teamUid: string } | { email: string }),
  now: Date,
): Promise<Invitation> {
  const found = await prisma.invitation.findFirst({ where: { ...whose, expiresAt: { gt: now } }, include: SHOWN });
  if (!found) throw notFound("invitation");
  return found as Invitation;
}

/** Deletes an invitation. Errors: invitation_not_found, if it was deleted concurrently. */
export async function deleteInvitation({ prisma }: Tx, uid: string): Promise<void> {
  const { count } = await prisma.invitation.deleteMany({ where: { uid } });
  if (count === 0) throw notFound("invitation");
}

/** Deletes the invitations of a team that one of its members created, and returns them. */
export async function deleteInvitationsBy(
  { prisma }: Tx,
  teamUid: string,
  invitedBy: string,
): Promise<Pick<Invitation, "uid" | "role">[]> {
  const invitations = await prisma.invitation.findMany({ where: { teamUid, invitedBy } });
  await prisma.invitation.deleteMany({ where: { uid: { in: invitations.map(({ uid }) => uid) } } });
  return invitations.map(({ uid, role }) => ({ uid, role: role as Role }));
}

export const countInvitations = ({ prisma }: Tx, teamUid: string): Promise<number> =>
  prisma.invitation.count({ where: { teamUid } });
