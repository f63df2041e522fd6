import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { failed } from "../domain/verdict.ts";
import { findAbandoned, lockAttempt, settleAttempt } from "../store/attempt-store.ts";
import { JUDGE_ENDED_WORK } from "./end-judge-run.ts";
import { JUDGE_WORK } from "./start-attempts.ts";

export type FailAbandonedDeps = { readonly database: Database; readonly clock: Clock };

/**
 * Fails attempts whose work items exhausted their tries, so that their pairs can be scored again. Returns their number.
 */
export async function failAbandonedAttempts({ database, clock }: FailAbandonedDeps): Promise<number> {
  const uids = await findAbandoned(database.sql, { pending: JUDGE_WORK, judging: JUDGE_ENDED_WORK });
  let count = 0;
  for (const uid of uids) {
    const isSettled = await database.transaction(async (tx) => {
      const attempt = await lockAttempt(tx, uid);
      return (
        attempt !== undefined &&
        settleAttempt(tx, attempt, failed("judge_unavailable", "The judge could not be carried out."), clock.now())
      );
    });
    count += isSettled ? 1 : 0;
  }
  return count;
}
