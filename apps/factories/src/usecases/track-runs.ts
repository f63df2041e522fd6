import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { as, type ConversationUid, type FactoryUid, type RunUid, type TeamUid } from "@millwright/ids";
import { changeTask, isStageSince, newTask, type RunVersion } from "../domain/task.ts";
import type { Origin } from "../events/origin.ts";
import { taskCreated, taskUpdated } from "../events/task-events.ts";
import {
  insertTaskIfFree,
  lockFactoryForShare,
  moveTask,
  setCurrentRuns,
  updateTaskOfRun,
  type CurrentRun,
} from "../store/task-store.ts";

/** A started run. */
export type RunStart = {
  runUid: string;
  conversationUid: string;
  startedByUid: string;
  parentRunUid?: string;
  retryOfRunUid?: string;
  origin?: string;
  factoryUid?: string;
  teamUid?: string;
  title: string;
  ticketSource?: string;
  ticketId?: string;
};

/**
 * Handles starts of runs in their order. A dispatch creates a task in stage TRIAGE. A top-level run of the team that
 * continues a task's conversation becomes the task's current run; a personal run never does. A retry of a task's
 * current run moves the task to the retry's conversation.
 *
 * Most runs belong to no task: those between dispatches and retries are looked up in one statement.
 */
export async function trackRunStarts(
  tx: Sql,
  clock: Clock,
  starts: readonly { readonly run: RunStart; readonly origin: Origin }[],
): Promise<void> {
  let current: CurrentRun[] = [];
  for (const { run, origin } of starts) {
    if (run.parentRunUid !== undefined || run.teamUid === undefined) continue;
    const top = { ...run, ...uidsOf(run, run.teamUid) };
    if (run.retryOfRunUid === undefined && !isDispatch(run)) {
      current.push(top);
      continue;
    }
    await setCurrentRuns(tx, current);
    current = [];
    await (run.retryOfRunUid === undefined ? createTask(tx, clock, top, origin) : followRetry(tx, clock, top, origin));
  }
  await setCurrentRuns(tx, current);
}

type TopRun = RunStart & CurrentRun;

const uidsOf = (run: RunStart, teamUid: string): CurrentRun => ({
  teamUid: as<TeamUid>(teamUid),
  conversationUid: as<ConversationUid>(run.conversationUid),
  runUid: as<RunUid>(run.runUid),
});

const isDispatch = ({ origin, factoryUid }: RunStart): boolean => origin === "dispatch" && factoryUid !== undefined;

async function createTask(tx: Sql, clock: Clock, run: TopRun, origin: Origin): Promise<void> {
  const { teamUid, conversationUid, runUid, startedByUid } = run;
  const factoryUid = as<FactoryUid>(run.factoryUid!);
  if (!(await lockFactoryForShare(tx, factoryUid))) return; // the factory was deleted with its tasks
  const task = newTask(
    {
      ...{ factoryUid, teamUid, conversationUid, runUid, startedByUid },
      title: run.title.trim() || "Untitled",
      ticketSource: run.ticketSource ?? null,
      ticketId: run.ticketId ?? null,
    },
    clock.now(),
  );
  await insertTaskIfFree(tx, task, taskCreated(task, origin));
}

const followRetry = (tx: Sql, clock: Clock, run: TopRun, origin: Origin): Promise<void> =>
  moveTask(tx, as<RunUid>(run.retryOfRunUid!), run, clock.now(), (task) =>
    taskUpdated(task, origin, ["conversation_id"]),
  );

/**
 * Handles the end of a run. If a task's current top-level run was cancelled, the task is cancelled, unless its stage
 * was set with knowledge of that cancellation.
 */
export async function trackRunEnd(
  tx: Sql,
  origin: Origin,
  clock: Clock,
  run: RunVersion & { state: string },
): Promise<void> {
  if (run.state !== "CANCELLED") return;
  await updateTaskOfRun(
    tx,
    as<RunUid>(run.runUid),
    (task) =>
      task.stage === "CANCELLED" || isStageSince(task, run)
        ? task
        : changeTask(task, { stage: "CANCELLED" }, clock.now()),
    (task, before) => taskUpdated(task, origin, ["stage"], { from: before.stage, byRootRun: before.currentRunUid }),
  );
}
