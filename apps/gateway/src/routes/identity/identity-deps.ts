import type { Cursors } from "@millwright/paging";
import type { IdentityOperations } from "../../identity/index.ts";
import type { CreateOnce } from "../../store/idempotency-store.ts";

/** Dependencies of the routes of teams, members, keys, secrets and agents. */
export type IdentityRouteDeps = { identity: IdentityOperations; cursors: Cursors; createOnce: CreateOnce };

/** Returns the first `limit` of `limit + 1` rows, and a cursor if a further row exists. */
export function pageOf<T>(
  rows: readonly T[],
  limit: number,
  seal: (last: T) => string,
): { items: T[]; nextCursor: string | undefined } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > limit && last !== undefined ? seal(last) : undefined };
}

/** Returns the time and uid of a cursor of a list sorted by time. */
export const openPosition = (position: unknown[]): { at: Date; uid: string } => ({
  at: new Date(position[0] as string),
  uid: position[1] as string,
});
