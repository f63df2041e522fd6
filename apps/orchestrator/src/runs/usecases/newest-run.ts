import { DomainError } from "@millwright/errors";
import type { LockedRun } from "../domain/run-change.ts";
import type { RunTransaction } from "../store/run-transaction.ts";

/**
 * Locks a run if it is its owner's current run in the conversation. No other transaction can continue the conversation
 * until this one ends.
 */
export const lockNewest = async (
  tx: RunTransaction,
  conversation: Pick<LockedRun, "conversationUid" | "owner">,
  uid: string,
): Promise<LockedRun | undefined> =>
  (await tx.lockConversation(conversation)) === uid ? (await tx.lockRuns([uid]))[0] : undefined;

/**
 * The error if another transaction continues the conversation concurrently. The caller must read the conversation
 * again.
 */
export const conversationBusy = (): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "conversation_busy",
    message: "Another request is continuing the conversation. Retry in a few seconds.",
  });
