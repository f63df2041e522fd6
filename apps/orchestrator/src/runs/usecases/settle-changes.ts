import { lifecycleOf, type ChangeContext, type LockedRun, type RunChange } from "../domain/run-change.ts";
import type { NewRunEvent } from "../domain/run-events.ts";
import { isExecuting, transition } from "../domain/run-state.ts";
import type { RunTransaction } from "../store/run-transaction.ts";
import { isTerminal } from "../domain/run.ts";
import { childrenMessage, evaluateWait, waitingMessage } from "../domain/wait.ts";
import { newUid } from "@millwright/ids";

/**
 * Saves changes of locked runs and their consequences. Undelivered follow-ups of a run that has ended are
 * dropped. Messages of a lost attempt are assigned to the next attempt. The parent of a run that has ended is notified,
 * and queued if it waited for that. `others` are further locked runs; they must include the parent of every run that
 * may end.
 */
export async function settleChanges(
  tx: RunTransaction,
  changes: readonly RunChange[],
  others: readonly LockedRun[],
  context: ChangeContext,
): Promise<void> {
  const changed = new Map(changes.map((change) => [change.run.uid, change]));
  const allChanges: RunChange[] = await Promise.all(
    changes.map(async (change) => {
      if (isRestart(change)) await tx.unassignMessages(change.run.uid, change.run.execution.id);
      return { ...change, events: [...change.events, ...(await dropFollowups(tx, change))] };
    }),
  );
  for (const change of changes.filter(isEnd)) {
    const parent = others.find(({ uid }) => uid === change.run.parentRunUid);
    if (parent && !changed.has(parent.uid) && !isTerminal(parent.state))
      allChanges.push(await notifyParent(tx, parent, change));
  }
  await tx.saveChanges(allChanges, context);
}

const isEnd = ({ run, next }: RunChange): boolean => isTerminal(next.run) && !isTerminal(run.state);
const isRestart = ({ run, next }: RunChange): boolean =>
  next.execution === "QUEUED" && isExecuting(run.execution.state);

/**
 * Drops the follow-ups that can no longer be delivered. Each follow-up is either delivered or dropped, once: one that
 * was assigned to a stopping execution is decided when that execution ends. One that was sent to an execution whose
 * setup failed is sent to its debug session; if it is not delivered there, it is dropped when the session ends.
 */
async function dropFollowups(tx: RunTransaction, change: RunChange): Promise<NewRunEvent[]> {
  const { run, next } = change;
  const { id, state } = run.execution;
  const reason = change.undelivered ?? (isTerminal(next.run) ? `run_${next.run.toLowerCase()}` : "execution_stopped");
  const hasEnded = (state === "STOPPING" || state === "DEBUG") && next.execution === "ENDED";
  if (!run.hasUndeliveredFollowups || (!hasEnded && !isEnd(change))) return [];
  const isStillActive = next.execution === "STOPPING" || next.execution === "DEBUG";
  const uids = hasEnded
    ? await tx.dropUndeliveredFollowupsOf(run.uid, reason, id)
    : await tx.dropUndeliveredFollowups(run.uid, reason, isStillActive ? id : undefined);
  if (next.execution === "DEBUG" && !hasEnded)
    uids.push(...(await tx.dropUndeliveredFollowupsOf(run.uid, reason, id, "input")));
  return uids.map((uid) => ({ kind: "followup_undelivered", payload: { followup_uid: uid, reason } }));
}

async function notifyParent(tx: RunTransaction, parent: LockedRun, child: RunChange): Promise<RunChange> {
  const finished: NewRunEvent = { kind: "child_finished", payload: { run_uid: child.run.uid, state: child.next.run } };
  const unchanged = {
    run: parent,
    next: { ...lifecycleOf(parent), lease: "unchanged", hasNextExecution: false },
    events: [finished],
  } as const;
  if (!parent.wait) return unchanged;
  const stored = await tx.unreportedChildren(parent.uid, parent.wait.runUids);
  const awaited = stored.map((sibling) => (sibling.uid === child.run.uid ? asEnded(child) : sibling));
  const { isComplete, ended } = evaluateWait(parent.wait.policy, awaited);
  if (!isComplete) {
    const message = waitingMessage(awaited.length - ended.length);
    return { ...unchanged, next: { ...unchanged.next, status: { message } } };
  }
  await tx.addMessage({
    uid: newUid(),
    runUid: parent.uid,
    kind: "children",
    text: childrenMessage(ended),
    mode: "normal",
    author: { type: "run", uid: child.run.uid },
  });
  await tx.markReported(parent.uid, ended);
  const queued: NewRunEvent = { kind: "run_queued", payload: { reason: "children" } };
  return {
    run: parent,
    next: transition(lifecycleOf(parent), { type: "wake" }),
    events: [finished, queued],
    wait: null,
  };
}

const asEnded = ({ run, next }: RunChange) => ({
  uid: run.uid,
  title: run.title,
  state: next.run,
  message: next.status?.message,
});
