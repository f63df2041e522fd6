import { newUid } from "@millwright/ids";
import { firstEvents, LOCAL_HOST, localSession, type LocalStart } from "../domain/local-run.ts";
import { lifecycleOf, type ChangeContext, type LockedRun } from "../domain/run-change.ts";
import { transition } from "../domain/run-state.ts";
import type { RunTransaction } from "../store/run-transaction.ts";
import { appendToLockedRun } from "./append-events.ts";

/**
 * Leases a run that the same transaction has inserted to the client that executes it, so that no worker sees it in the
 * queue. The run passes through the same states as every run (offered, accepted, started); the client takes the place
 * of a worker session.
 */
export async function startLocally(
  tx: RunTransaction,
  runUid: string,
  { clientUid, command }: LocalStart,
  context: ChangeContext,
): Promise<void> {
  const executionId = await tx.offerToClient(runUid, clientUid);
  const offered = await lock(tx, runUid);
  const claimed = { kind: "run_claimed", payload: { worker_host: LOCAL_HOST }, executionId } as const;
  await tx.saveChanges(
    [{ run: offered, next: transition(lifecycleOf(offered), { type: "accept" }), events: [claimed] }],
    context,
  );
  const inputs = await tx.assignInputs([{ runUid, executionId }]);
  const [prompt] = inputs.get(executionId) ?? [];
  const events = firstEvents(command.join(" "), prompt ?? { uid: "", text: "" }, newUid(), new Date());
  await appendToLockedRun(tx, { runUid, executionId, attempt: 1 }, localSession(clientUid), events);
}

async function lock(tx: RunTransaction, runUid: string): Promise<LockedRun> {
  const [run] = await tx.lockRuns([runUid]);
  if (!run) throw new Error("the run was inserted by this transaction");
  return run;
}
