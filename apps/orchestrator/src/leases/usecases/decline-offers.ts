import { newUid } from "@millwright/ids";
import { lifecycleOf } from "../../runs/domain/run-change.ts";
import { transition } from "../../runs/domain/run-state.ts";
import type { InRunTransaction } from "../../runs/store/run-transaction.ts";
import type { LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";
import { requeuedEvent } from "../../runs/usecases/execution-events.ts";

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
        next: transition(lifecycleOf(run), { type: "decline" }),
        events: [requeuedEvent("declined", executionId)],
      };
      await tx.saveChanges([change], { actor: { type: "worker", uid: session.workerHost }, requestId: newUid() });
    });
  }
}
