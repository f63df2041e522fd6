import type { Sql } from "@millwright/database";
import { notFound } from "@millwright/errors";
import type { ManagedSecret } from "../../gen/prisma/client.ts";
import type { Tx } from "./identity-db.ts";

export type Secret = Pick<ManagedSecret, "uid" | "name" | "version" | "createdAt" | "updatedAt">;

const SHOWN = { sealed: true, teamUid: true, updatedBy: true } as const;

/** Returns a page of a team's secrets, ordered by name, after a name. Does not decrypt values. */
export const listSecrets = (
  { prisma }: Tx,
  teamUid: string,
  after: string | undefined,
  limit: number,
): Promise<Secret[]> =>
  prisma.managedSecret.findMany({
    where: { teamUid, name: after === undefined ? undefined : { gt: after } },
    omit: SHOWN,
    orderBy: { name: "asc" },
    take: limit,
  });

export const findSecret = ({ prisma }: Tx, teamUid: string, name: string): Promise<Secret | null> =>
  prisma.managedSecret.findUnique({ where: { teamUid_name: { teamUid, name } }, omit: SHOWN });

export const insertSecret = ({ prisma }: Tx, secret: Omit<ManagedSecret, "version">): Promise<Secret> =>
  prisma.managedSecret.create({ data: secret, omit: SHOWN });

export const replaceSecret = (
  { prisma }: Tx,
  uid: string,
  sealed: string,
  updatedBy: string,
  now: Date,
): Promise<Secret> =>
  prisma.managedSecret.update({
    where: { uid },
    data: { sealed, updatedBy, updatedAt: now, version: { increment: 1 } },
    omit: SHOWN,
  });

/** Deletes a secret and returns it. Errors: secret_not_found. */
export async function deleteSecretRow(tx: Tx, teamUid: string, name: string): Promise<Secret> {
  const secret = await findSecret(tx, teamUid, name);
  if (!secret) throw notFound("secret");
  await tx.prisma.managedSecret.delete({ where: { uid: secret.uid } });
  return secret;
}

/** Returns the encrypted values of the secrets that exist. */
export const sealedSecrets = (
  { prisma }: Tx,
  teamUid: string,
  names: readonly string[],
): Promise<Pick<ManagedSecret, "uid" | "name" | "version" | "sealed">[]> =>
  prisma.managedSecret.findMany({
    where: { teamUid, name: { in: [...names] } },
    select: { uid: true, name: true, version: true, sealed: true },
  });

/** Returns the names for which the team has a secret. */
export async function presentSecrets(sql: Sql, teamUid: string, names: readonly string[]): Promise<string[]> {
  const { rows } = await sql.query<{ name: string }>(
    "SELECT name FROM managed_secrets WHERE team_uid = $1 AND name = ANY($2)",
    [teamUid, names],
  );
  return rows.map(({ name }) => name);
}

/** Returns the names for which the team has no secret. */
export async function missingSecrets({ prisma }: Tx, teamUid: string, names: readonly string[]): Promise<string[]> {
  const known = await prisma.managedSecret.findMany({
    where: { teamUid, name: { in: [...names] } },
    select: { name: true },
  });
  const have = new Set(known.map(({ name }) => name));
  return [...new Set(names)].filter((name) => !have.has(name));
}
