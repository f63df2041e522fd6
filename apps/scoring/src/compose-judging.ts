import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import type { CallerSigner } from "@millwright/rpc";
import type { Transport } from "@connectrpc/connect";
import type { JsonObject } from "@millwright/json";
import type { WorkHandler } from "@millwright/work";
import { callerFor } from "./clients/acting-caller.ts";
import { orchestratorClient } from "./clients/orchestrator-client.ts";
import { onRunEvents } from "./events/on-run-events.ts";
import { attemptStore } from "./store/attempt-store.ts";
import { scorerReader } from "./store/scored-run-store.ts";
import { CANCEL_JUDGE_WORK, cancelJudgeRun } from "./usecases/cancel-judge-run.ts";
import type { DispatchDeps } from "./usecases/dispatch-scoring.ts";
import { endJudgeRun, JUDGE_ENDED_WORK } from "./usecases/end-judge-run.ts";
import { judgeAttempt } from "./usecases/judge-attempt.ts";
import type { ReportScoresDeps } from "./usecases/report-scores.ts";
import type { ScopeDeps } from "./usecases/scope.ts";
import { scoreRun, SCORE_RUN_WORK } from "./usecases/score-run.ts";
import { JUDGE_WORK } from "./usecases/start-attempts.ts";

export type JudgingOptions = ScopeDeps & {
  readonly database: Database;
  readonly clock: Clock;
  readonly signer: CallerSigner;
  readonly orchestrator: Transport;
  readonly coolDownMs: number;
};

export type Judging = {
  readonly dispatch: DispatchDeps;
  readonly report: ReportScoresDeps;
  readonly runEvents: ReturnType<typeof onRunEvents>;
  readonly work: Readonly<Record<string, WorkHandler>>;
};

/** How runs are scored: by themselves, on demand and by the reports of their judges. */
export function composeJudging({ database, clock, signer, factories, orchestrator, coolDownMs }: JudgingOptions): Judging {
  const runs = orchestratorClient(orchestrator, signer);
  const deps = { database, clock, factories, runs, attempts: attemptStore(database), scorerReader: scorerReader(database) };
  const scorerDefaults = async (behalf: Parameters<typeof callerFor>[1], factoryUid: string): Promise<JsonObject> =>
    (await factories.get(callerFor(signer.service, behalf), factoryUid)).scorerDefaults as JsonObject;
  return {
    dispatch: deps,
    report: deps,
    runEvents: onRunEvents({ coolDownMs }),
    work: {
      [SCORE_RUN_WORK]: scoreRun(deps),
      [JUDGE_WORK]: judgeAttempt({ ...deps, scorerDefaults }),
      [JUDGE_ENDED_WORK]: endJudgeRun(deps),
      [CANCEL_JUDGE_WORK]: cancelJudgeRun(deps),
    },
  };
}
