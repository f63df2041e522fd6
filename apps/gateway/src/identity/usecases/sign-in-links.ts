import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { randomToken } from "@millwright/ids";
import { hashOfKey } from "../domain/credentials.ts";
import { findSignInLink, insertSignInLink, takeSignInLink } from "../store/sign-in-link-store.ts";

type Deps = { readonly sql: Sql; readonly clock: Clock };

const VALID_MS = 30 * 60_000;

/** Returns the token of a link that signs a person in once, within 30 minutes. Only its hash is stored. */
export async function createSignInLink({ sql, clock }: Deps, userUid: string): Promise<string> {
  const now = clock.now();
  const token = randomToken(32);
  await insertSignInLink(sql, {
    tokenHash: hashOfKey(token),
    userUid,
    now,
    expiresAt: new Date(now.getTime() + VALID_MS),
  });
  return token;
}

/** Returns the name of the person whom a link signs in, or undefined if it is used or expired. */
export const describeSignInLink = ({ sql, clock }: Deps, token: string): Promise<string | undefined> =>
  findSignInLink(sql, hashOfKey(token), clock.now());

/** Uses up a link. Returns the uid of its person, or undefined if it is used or expired. */
export const redeemSignInLink = ({ sql, clock }: Deps, token: string): Promise<string | undefined> =>
  takeSignInLink(sql, hashOfKey(token), clock.now());
