import type { Sql } from "@millwright/database";
import type { EventHandlers, EventsHandlers, StoredEvent } from "@millwright/events";
import { enqueueAllWork } from "@millwright/work";
import { JUDGE_SOURCE, TRIAL_SOURCE } from "../domain/eligibility.ts";
import { attemptOfCause } from "../domain/judge-run.ts";
import { lockAttempt, markJudging } from "../store/attempt-store.ts";
import { noteFinishedRuns, teamsThatScore, type FinishedRun } from "../store/scored-run-store.ts";
import { enqueueCancel } from "../usecases/cancel-judge-run.ts";
import { JUDGE_ENDED_WORK } from "../usecases/end-judge-run.ts";
import { SCORE_RUNS_WORK, type ScoreRuns } from "../usecases/score-runs.ts";

export type OnRunEventsDeps = {
  /** Time for which a run must have been terminal before it is scored, in milliseconds. */
  readonly coolDownMs: number;
};

type EndedRun = FinishedRun & { readonly eventUid: string };

/** Maximum number of runs that are evaluated in one transaction. */
const GROUP_MAX = 50;

/**
 * Returns handlers of run events. A finished run is scored after the cool-down. The end of a judge run ends its
 * attempt. The creation event of a judge run identifies its attempt, so the judge run is not lost if its creator died
 * before recording it.
 */
export const onRunEvents = ({
  coolDownMs,
}: OnRunEventsDeps): { handlers: EventHandlers; batchHandlers: EventsHandlers } => ({
  handlers: {},
  batchHandlers: {
    "millwright.run.created.v1": async (tx, events) => {
      for (const event of events) if (event.payload["source"] === JUDGE_SOURCE) await judgeRunCreated(tx, event);
    },
    "millwright.run.finished.v1": async (tx, events) => {
      await judgeRunsFinished(
        tx,
        events.filter(({ payload }) => payload["source"] === JUDGE_SOURCE),
      );
      await runsFinished(
        tx,
        events.filter(({ payload }) => payload["source"] !== JUDGE_SOURCE && payload["source"] !== TRIAL_SOURCE),
        coolDownMs,
      );
    },
  },
});

async function judgeRunCreated(tx: Sql, { entityUid: runUid, teamUid, cause = "" }: StoredEvent): Promise<void> {
  const attemptUid = attemptOfCause(cause);
  if (attemptUid === undefined || teamUid === undefined) return;
  const attempt = await lockAttempt(tx, attemptUid);
  if (!attempt) return enqueueCancel(tx, { runUid, teamUid }); // its scorer was deleted
  await markJudging(tx, attemptUid, runUid);
}

const judgeRunsFinished = (tx: Sql, events: readonly StoredEvent[]): Promise<void> =>
  enqueueAllWork(
    tx,
    events.map(({ entityUid: runUid, entityVersion, teamUid }) => ({
      kind: JUDGE_ENDED_WORK,
      key: `${runUid} ${entityVersion}`,
      payload: { runUid },
      teamUid,
    })),
  );

async function runsFinished(tx: Sql, events: readonly StoredEvent[], coolDownMs: number): Promise<void> {
  const ofTeams = events.flatMap((event) =>
    event.teamUid === undefined ? [] : [{ ...event, teamUid: event.teamUid }],
  );
  if (ofTeams.length === 0) return;
  const teams = await teamsThatScore(tx, [...new Set(ofTeams.map(({ teamUid }) => teamUid))]);
  const runs = ofTeams
    .filter(({ teamUid }) => teams.has(teamUid))
    .map(({ uid: eventUid, entityUid: runUid, teamUid, entityVersion: version, occurredAt: finishedAt }) => ({
      eventUid,
      runUid,
      teamUid,
      version,
      finishedAt,
    }));
  if (runs.length === 0) return;
  await noteFinishedRuns(tx, runs);
  await enqueueAllWork(
    tx,
    groupsOf(runs).map((group) => ({
      kind: SCORE_RUNS_WORK,
      key: group[0]!.eventUid,
      payload: { runs: group.map(({ runUid, version }) => ({ runUid, version })) } satisfies ScoreRuns,
      teamUid: group[0]!.teamUid,
      runAt: new Date(Math.max(...group.map(({ finishedAt }) => finishedAt.getTime())) + coolDownMs),
    })),
  );
}

/** Groups finished runs of the same team, so that they are evaluated in one batch. */
function groupsOf(runs: readonly EndedRun[]): EndedRun[][] {
  const ofTeams = [...Map.groupBy(runs, ({ teamUid }) => teamUid).values()];
  return ofTeams.flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / GROUP_MAX) }, (_, index) =>
      group.slice(index * GROUP_MAX, (index + 1) * GROUP_MAX),
    ),
  );
}
