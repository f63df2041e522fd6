import type { Clock } from "@millwright/clock";
import { BackgroundLoop, type Database } from "@millwright/database";
import type { CallerSigner } from "@millwright/rpc";
import type { Transport } from "@connectrpc/connect";
import type { JsonObject } from "@millwright/json";
import type { Logger } from "@millwright/telemetry";
import type { WorkHandler } from "@millwright/work";
import { callerFor } from "./clients/acting-caller.ts";
import { orchestratorClient } from "./clients/orchestrator-client.ts";
import { onRunEvents } from "./events/on-run-events.ts";
import { attemptStore } from "./store/attempt-store.ts";
import { improvementStore } from "./store/improvement-store.ts";
import { scorerReader } from "./store/scored-run-store.ts";
import { CANCEL_JUDGE_WORK, cancelJudgeRun } from "./usecases/cancel-judge-run.ts";
import type { DispatchDeps } from "./usecases/dispatch-scoring.ts";
import { endJudgeRun, JUDGE_ENDED_WORK } from "./usecases/end-judge-run.ts";
import { decideImprovements, improveAgent, IMPROVE_WORK } from "./usecases/improve-agents.ts";
import { failAbandonedAttempts } from "./usecases/fail-abandoned-attempts.ts";
import { judgeAttempt } from "./usecases/judge-attempt.ts";
import type { ReportScoresDeps } from "./usecases/report-scores.ts";
import type { ScopeDeps } from "./usecases/scope.ts";
import { SCORE_RUNS_WORK, scoreRuns } from "./usecases/score-runs.ts";
import { JUDGE_WORK } from "./usecases/start-attempts.ts";

export type JudgingOptions = ScopeDeps & {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signer: CallerSigner;
  readonly orchestrator: Transport;
  readonly coolDownMs: number;
  readonly timeScale: number;
};

export type Judging = {
  readonly dispatch: DispatchDeps;
  readonly report: ReportScoresDeps;
  readonly runEvents: ReturnType<typeof onRunEvents>;
  readonly work: Readonly<Record<string, WorkHandler>>;
  /** Starts self-improvement runs that are due; `start` repeats it. Returns their number. */
  decideImprovements(): Promise<number>;
  /** Fails attempts whose work items exhausted their tries; `start` repeats it. Returns their number. */
  failAbandonedAttempts(): Promise<number>;
  start(): void;
  stop(): Promise<void>;
};

const SWEEP_EVERY_MS = 60_000;

/** Composes the scoring of runs: automatic, on demand, and from the reports of judge runs. */
export function composeJudging({
  database,
  clock,
  log,
  signer,
  factories,
  orchestrator,
  coolDownMs,
  timeScale,
}: JudgingOptions): Judging {
  const runs = orchestratorClient(orchestrator, signer);
  const deps = {
    database,
    clock,
    factories,
    runs,
    attempts: attemptStore(database),
    scorerReader: scorerReader(database),
  };
  const scorerDefaults = async (behalf: Parameters<typeof callerFor>[1], factoryUid: string): Promise<JsonObject> =>
    (await factories.get(callerFor(signer.service, behalf), factoryUid)).scorerDefaults as JsonObject;
  const improvements = improvementStore(database);
  const decide = (): Promise<number> => decideImprovements({ database, clock, improvements });
  const failAbandoned = (): Promise<number> => failAbandonedAttempts({ database, clock });
  const sweeper = new BackgroundLoop({
    everyMs: SWEEP_EVERY_MS / timeScale,
    step: async () => ((await failAbandoned()) + (await decide()) > 0 ? "again" : "idle"),
    onError: (error) =>
      log.warn({ error }, "abandoned attempts and self-improvement were not considered; it is tried again"),
  });
  return {
    decideImprovements: decide,
    failAbandonedAttempts: failAbandoned,
    start: () => sweeper.start(),
    stop: () => sweeper.stop(),
    dispatch: deps,
    report: deps,
    runEvents: onRunEvents({ coolDownMs }),
    work: {
      [SCORE_RUNS_WORK]: scoreRuns(deps),
      [JUDGE_WORK]: judgeAttempt({ ...deps, scorerDefaults }),
      [JUDGE_ENDED_WORK]: endJudgeRun(deps),
      [CANCEL_JUDGE_WORK]: cancelJudgeRun(deps),
      [IMPROVE_WORK]: improveAgent({ log, runs, improvements }),
    },
  };
}
