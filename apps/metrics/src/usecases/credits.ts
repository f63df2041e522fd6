import { actorOf, requirePlatformAdmin, requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { invalidArgument, notFound } from "@millwright/errors";
import { idempotentRequest } from "@millwright/idempotency";
import { isUuid, newUid } from "@millwright/ids";
import type { Cursors } from "@millwright/paging";
import { creditBalance, type CreditBalance } from "../domain/credit-balance.ts";
import { creditStore, type CreditGrant } from "../store/credit-store.ts";
import { pageSizeOf } from "./page-size.ts";
import { responses } from "../store/idempotency.ts";

export type CreditsDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly cursors: Cursors;
  /** Returns the time up to which spend is complete. */
  readonly asOf: () => Promise<Date>;
};

export type GrantRequest = Pick<CreditGrant, "teamUid" | "micros" | "note" | "expiresAt"> & {
  readonly idempotencyKey: string;
};

const LIST = "credit grants";
/** A billion dollars. */
const MICROS_MAX = 1_000_000_000_000_000n;
const NOTE_MAX = 500;

/** Returns what a team was granted, has spent and has left. Errors: team_not_found · not_authorized. */
export async function getCreditBalance(
  { database, clock, asOf }: CreditsDeps,
  caller: Caller,
  teamUid: string,
): Promise<CreditBalance & { readonly asOf: Date }> {
  requireVerb(caller, teamUid, "run.view", "team");
  const completeTo = await asOf();
  const grants = await creditStore.all(database.searches, teamUid);
  const first = grants.map(({ grantedAt }) => grantedAt).toSorted((a, b) => a.getTime() - b.getTime())[0];
  const days = first ? await creditStore.spendPerDay(database.searches, teamUid, first) : [];
  return { ...creditBalance(grants, days, clock.now()), asOf: completeTo };
}

/** Lists a team's grants, newest first. Errors: team_not_found · not_authorized · limit_invalid · invalid_cursor. */
export async function listCreditGrants(
  { database, cursors }: CreditsDeps,
  caller: Caller,
  { teamUid, pageSize, pageToken }: { readonly teamUid: string; readonly pageSize: number; readonly pageToken: string },
): Promise<{ readonly grants: readonly CreditGrant[]; readonly nextPageToken: string }> {
  requireVerb(caller, teamUid, "run.view", "team");
  const limit = pageSizeOf(pageSize);
  const [grantedAt, uid] = pageToken === "" ? [] : (cursors.open(LIST, { teamUid }, pageToken) as [string, string]);
  const after = grantedAt === undefined || uid === undefined ? undefined : { grantedAt, uid };
  const rows = await creditStore.list(database.searches, teamUid, after, limit + 1);
  const grants = rows.slice(0, limit);
  const last = rows.length > limit ? grants.at(-1) : undefined;
  const position = last && [last.grantedAt.toISOString(), last.uid];
  return { grants, nextPageToken: position ? cursors.seal(LIST, { teamUid }, position) : "" };
}

/**
 * Grants credits to a team, once per key. The gateway has checked that the team exists.
 *
 * Errors: not_authorized unless a platform administrator calls · team_not_found · credits_invalid ·
 * idempotency_mismatch (conflict).
 */
export async function grantCredits(
  { database, clock }: CreditsDeps,
  caller: Caller,
  request: GrantRequest,
): Promise<CreditGrant> {
  requirePlatformAdmin(caller, "Granting credits");
  const now = clock.now();
  checkGrant(request);
  const { idempotencyKey, ...grant } = request;
  const { type, uid: principalUid } = actorOf(caller);
  const idempotency = idempotentRequest(principalUid, "credit grant", idempotencyKey, {
    ...grant,
    micros: String(grant.micros),
    expiresAt: grant.expiresAt?.toISOString(),
  });
  const uid = await database.transaction((tx) =>
    responses.once(tx, idempotency, now, async () => {
      checkExpiry(request, now); // not for a repeated request, which may arrive when the grant has expired
      const added = newUid();
      await creditStore.insert(tx, { ...grant, uid: added, grantedAt: now, createdBy: { type, uid: principalUid } });
      return added;
    }),
  );
  return creditStore.get(database.sql, uid);
}

function checkGrant({ teamUid, micros, note }: GrantRequest): void {
  if (!isUuid(teamUid)) throw notFound("team");
  if (micros < 1n || micros > MICROS_MAX)
    throw invalidArgument(
      "credits_invalid",
      `amount_usd must be between 0.000001 and 1000000000 (got ${Number(micros) / 1e6}).`,
    );
  if (note.length > NOTE_MAX)
    throw invalidArgument("credits_invalid", `note must have at most ${NOTE_MAX} characters (got ${note.length}).`);
}

function checkExpiry({ expiresAt }: GrantRequest, now: Date): void {
  if (expiresAt && expiresAt <= now)
    throw invalidArgument("credits_invalid", `expires_at must be in the future (got ${expiresAt.toISOString()}).`);
}
