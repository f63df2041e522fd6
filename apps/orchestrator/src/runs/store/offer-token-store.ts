import { hash } from "node:crypto";
import type { Sql } from "@millwright/database";
import type { LeaseRef } from "../domain/worker-session.ts";

/** Returns the hash under which an offer token is stored. */
export const offerHash = (token: string): Buffer => hash("sha256", token, "buffer");

/**
 * Opens an accepted lease of a session to the caller that presents the token; an earlier token becomes invalid. The run
 * must be locked.
 */
export async function storeOfferToken(
  tx: Sql,
  sessionUid: string,
  { executionId, attempt }: LeaseRef,
  token: string,
): Promise<void> {
  await tx.query(
    "UPDATE leases SET dispatcher_uid = $1, offer_hash = $4 WHERE execution_id = $2 AND attempt = $3 AND session_uid = $1 AND accepted",
    [sessionUid, executionId, attempt, offerHash(token)],
  );
}
