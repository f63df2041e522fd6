import { BackgroundLoop, type Database } from "@millwright/database";
import type { Transport } from "@connectrpc/connect";
import type { JsonObject } from "@millwright/json";
import type { ServiceOptions } from "@millwright/service";
import { callerFor } from "./clients/acting-caller.ts";
import { orchestratorClient } from "./clients/orchestrator-client.ts";
import { onRunEvents } from "./events/on-run-events.ts";
import { attemptStore } from "./store/attempt-store.ts";
import { improvementStore } from "./store/improvement-store.ts";
import { scorerReader } from "./store/scored-run-store.ts";
import { CANCEL_JUDGE_WORK, cancelJudgeRun } from "./usecases/cancel-judge-run.ts";
import { endJudgeRun, JUDGE_ENDED_WORK } from "./usecases/end-judge-run.ts";
import { decideImprovements, improveAgent, IMPROVE_WORK } from "./usecases/improve-agents.ts";
import { failAbandonedAttempts } from "./usecases/fail-abandoned-attempts.ts";
import { judgeAttempt } from "./usecases/judge-attempt.ts";
import type { ScopeDeps } from "./usecases/scope.ts";
import { SCORE_RUNS_WORK, scoreRuns } from "./usecases/score-runs.ts";
import { JUDGE_WORK } from "./usecases/start-attempts.ts";

export type JudgingOptions = Pick<ServiceOptions, "clock" | "log" | "signer"> &
  ScopeDeps & {
    readonly database: Database;
    readonly orchestrator: Transport;
    readonly coolDownMs: number;
    readonly timeScale: number;
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
}: JudgingOptions) {
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
  /** Starts self-improvement runs that are due; `start` repeats it. Returns their number. */
  const decide = (): Promise<number> => decideImprovements({ database, clock, improvements });
  /** Fails attempts whose work items exhausted their tries; `start` repeats it. Returns their number. */
  const failAbandoned = (): Promise<number> => failAbandonedAttempts({ database, clock });
  const sweeper = new BackgroundLoop({
    everyMs: SWEEP_EVERY_MS / timeScale,
    step: async () => ((await failAbandoned()) + (await decide()) > 0 ? "again" : "idle"),
    onError: (error) => log.warn({ error }, "handling abandoned attempts and self-improvement failed; retrying"),
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
