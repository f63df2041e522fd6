import type { Clock } from "@millwright/clock";
import { newUid } from "@millwright/ids";
import { platformWorkerKey, type MasterKeys } from "@millwright/vault";
import { hashOfKey } from "../domain/credentials.ts";
import { facts, type Cause } from "../events/facts.ts";
import { appendEvents } from "@millwright/events";
import type { IdentityDb } from "../store/identity-db.ts";
import { ensureUser, insertMember, insertTeam } from "../store/team-store.ts";
import { issueKey } from "./issue-key.ts";
import { createSignInLink } from "./sign-in-links.ts";
import { verifyMasterKey } from "./verify-master-key.ts";

export type Bootstrap = {
  /** The first owner's key; set on the first start only. */
  apiKey?: string;
  /** The token of a link that signs the first owner in once; set on the first start only, unless the key was chosen. */
  signInToken?: string;
  /**
   * A worker key for runs of every team. Unless the operator chose one, it is the same on every start with the same
   * master key.
   */
  workerKey: string;
};

const OWNER_EMAIL = "owner@localhost";

/**
 * Creates, on the first start of a platform, the team "default", its owner (a platform administrator), the owner's key
 * and, unless the key is chosen, a link that signs the owner in. Creates, on every start, the platform's worker key if it is absent; the key is chosen or derived from the master
 * key, so its text need not be stored.
 *
 * Errors: those of `verifyMasterKey`.
 */
export async function bootstrap(
  deps: { db: IdentityDb; clock: Clock; masterKeys: MasterKeys },
  chosen: { apiKey?: string | undefined; workerKey?: string | undefined },
): Promise<Bootstrap> {
  const by: Cause = { actor: { type: "service", uid: "gateway" }, requestId: newUid() };
  const workerKey = chosen.workerKey ?? platformWorkerKey(deps.masterKeys.masterKey);
  return deps.db.transaction(async (tx) => {
    await tx.sql.query("SELECT pg_advisory_xact_lock(hashtextextended('bootstrap', 0))::text");
    await verifyMasterKey(tx.sql, deps.masterKeys);
    const known = await tx.prisma.apiKey.findUnique({ where: { hash: hashOfKey(workerKey) } });
    if (!known)
      await issueKey({ tx, clock: deps.clock }, by, {
        kind: "worker",
        name: "platform",
        teamUid: null,
        text: workerKey,
      });
    if ((await tx.prisma.team.count()) > 0) return { workerKey };
    const now = deps.clock.now();
    const team = await insertTeam(tx, { uid: newUid(), name: "default", createdAt: now, updatedAt: now });
    const { user } = await ensureUser(tx, { uid: newUid(), email: OWNER_EMAIL, displayName: "Owner", createdAt: now });
    await tx.prisma.user.update({ where: { uid: user.uid }, data: { platformAdmin: true } });
    await insertMember(tx, team.uid, user, "owner", now);
    await appendEvents(tx.sql, [
      facts.teamCreated(by, { uid: team.uid, teamUid: team.uid, payload: { name: team.name } }),
      facts.memberAdded(by, { uid: `${team.uid}:${user.uid}`, teamUid: team.uid, payload: { role: "owner" } }),
    ]);
    const order = {
      kind: "api",
      name: "first key",
      teamUid: team.uid,
      userUid: user.uid,
      allTeams: true,
      personal: true,
    } as const;
    const { text } = await issueKey({ tx, clock: deps.clock }, by, {
      ...order,
      text: chosen.apiKey,
    });
    if (chosen.apiKey !== undefined) return { apiKey: text, workerKey };
    return {
      apiKey: text,
      workerKey,
      signInToken: await createSignInLink({ sql: tx.sql, clock: deps.clock }, user.uid),
    };
  });
}
