import type { Clock } from "@millwright/clock";
import { newUid } from "@millwright/ids";
import type { Cause } from "../events/facts.ts";
import type { IdentityDb, Tx } from "../store/identity-db.ts";
import { issueKey } from "./issue-key.ts";

/**
 * Creates another key of the platform's first administrator, or of the person with an e-mail address. It is for
 * operators with access to the database, and the only way to create a key for a person who lost theirs. The key is
 * valid for all teams of the person, who may be in none. The audit log records it; other keys are unchanged.
 *
 * Errors: a plain Error if there is no such person.
 */
export async function issueOwnerKey({ db, clock }: { db: IdentityDb; clock: Clock }, email?: string): Promise<string> {
  const by: Cause = { actor: { type: "service", uid: "gateway" }, requestId: newUid() };
  return db.transaction(async (tx) => {
    const holder = email === undefined ? await firstOwner(tx) : await personWith(tx, email.toLowerCase());
    const name = email === undefined ? "owner key" : "key from the operator";
    return (await issueKey({ tx, clock }, by, { kind: "api", name, ...holder, allTeams: true, personal: true })).text;
  });
}

type KeyHolder = { userUid: string; teamUid: string | null };

async function firstOwner({ prisma }: Tx): Promise<KeyHolder> {
  const owner = await prisma.membership.findFirst({
    where: { role: "owner", user: { platformAdmin: true } },
    orderBy: { createdAt: "asc" },
  });
  if (!owner) throw new Error("No platform administrator owns a team. Start the platform once, then create the key.");
  return { userUid: owner.userUid, teamUid: owner.teamUid };
}

async function personWith({ prisma }: Tx, email: string): Promise<KeyHolder> {
  const user = await prisma.user.findUnique({
    where: { email },
    include: { memberships: { orderBy: { createdAt: "asc" }, take: 1 } },
  });
  if (!user) throw new Error(`No user of this platform has the e-mail address ${email}.`);
  return { userUid: user.uid, teamUid: user.memberships[0]?.teamUid ?? null };
}
