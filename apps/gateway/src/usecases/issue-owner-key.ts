import type { Clock } from "@millwright/clock";
import { newUid } from "@millwright/ids";
import type { Cause } from "../events/facts.ts";
import type { IdentityDb } from "../store/identity-db.ts";
import { issueKey } from "./issue-key.ts";

/**
 * Another key of the platform's first administrator, for an operator who has the database and no key any more. Like every other order of a key it is
 * told to the audit log; no other key is touched. Errors: a plain Error where nobody can have it.
 */
export async function issueOwnerKey({ db, clock }: { db: IdentityDb; clock: Clock }): Promise<string> {
  const by: Cause = { actor: { type: "service", uid: "gateway" }, requestId: newUid() };
  return db.transaction(async (tx) => {
    const owner = await tx.prisma.membership.findFirst({ where: { role: "owner", user: { platformAdmin: true } }, orderBy: { createdAt: "asc" } });
    if (!owner) throw new Error("No platform administrator owns a team: has the platform been started?");
    const { text } = await issueKey({ tx, clock }, by, { kind: "api", name: "owner key", teamUid: owner.teamUid, userUid: owner.userUid, allTeams: true });
    return text;
  });
}
