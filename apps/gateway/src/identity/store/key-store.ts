import { notFound } from "@millwright/errors";
import type { KeyKind } from "../domain/credentials.ts";
import type { ApiKey } from "../../gen/prisma/client.ts";
import type { Tx } from "./identity-db.ts";

/** A key as lists show it, without its text and hash. */
export type Key = Omit<ApiKey, "hash" | "kind"> & { kind: KeyKind };

const SHOWN = { hash: true } as const;

export async function insertKey({ prisma }: Tx, key: Key & { hash: string }): Promise<Key> {
  return (await prisma.apiKey.create({ data: key, omit: SHOWN })) as Key;
}

/** Returns a page of a team's keys, optionally of one user only, newest first, after a position. */
export async function listKeys(
  { prisma }: Tx,
  teamUid: string,
  options: { userUid?: string | undefined; after?: { createdAt: Date; uid: string } | undefined; limit: number },
): Promise<Key[]> {
  const { userUid, after, limit } = options;
  const rows = await prisma.apiKey.findMany({
    where: {
      teamUid,
      userUid,
      OR: after && [{ createdAt: { lt: after.createdAt } }, { createdAt: after.createdAt, uid: { lt: after.uid } }],
    },
    omit: SHOWN,
    orderBy: [{ createdAt: "desc" }, { uid: "desc" }],
    take: limit,
  });
  return rows as Key[];
}

/** Returns a key of a team. Errors: key_not_found. */
export async function getKey({ prisma }: Tx, teamUid: string, uid: string): Promise<Key> {
  const key = await prisma.apiKey.findFirst({ where: { uid, teamUid }, omit: SHOWN });
  if (!key) throw notFound("key");
  return key as Key;
}

/** Deletes keys and returns those that existed. */
export async function deleteKeys(
  { prisma }: Tx,
  where: { uid: string } | { teamUid: string; userUid: string },
): Promise<Key[]> {
  const keys = await prisma.apiKey.findMany({ where, omit: SHOWN });
  await prisma.apiKey.deleteMany({ where: { uid: { in: keys.map((key) => key.uid) } } });
  return keys as Key[];
}
