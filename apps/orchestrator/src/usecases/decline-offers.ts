import { newUid } from "@millwright/ids";
import { lifeOf } from "../domain/run-change.ts";
import { transition } from "../domain/run-state.ts";
import type { InRunTransaction } from "../domain/run-transaction.ts";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import { queuedAgain } from "./execution-events.ts";

/** Releases offers: their runs are queued again. Offers that are no longer open to this session are ignored. */
export async function declineOffers(
  deps: { readonly runs: InRunTransaction },
  session: WorkerSession,
  offers: readonly LeaseRef[],
): Promise<void> {
  for (const { executionId, attempt } of offers) {
    await deps.runs(async (tx) => {
      const ref = await tx.runOfExecution(executionId);
      const [run] = ref ? await tx.lockRuns([ref.uid], [executionId]) : [];
      const isOpen =
        run?.execution.state === "OFFERED" &&
        run.execution.attempt === attempt &&
        run.execution.lease?.sessionUid === session.uid;
      if (!isOpen) return;
      const change = {
        run,
        next: transition(lifeOf(run), { type: "give_back" }),
        events: [queuedAgain("declined", executionId)],
      };
      await tx.save([change], { actor: { type: "worker", uid: session.workerHost }, requestId: newUid() });
    });
  }
}
