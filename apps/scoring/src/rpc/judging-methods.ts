import type { ServiceImpl } from "@connectrpc/connect";
import type { scoring } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { dispatchScoring, type DispatchDeps } from "../usecases/dispatch-scoring.ts";
import { reportScores, type ReportScoresDeps } from "../usecases/report-scores.ts";

export type JudgingMethodsDeps = {
  readonly judging: { readonly dispatch: DispatchDeps; readonly report: ReportScoresDeps };
};

/** Methods of ScorerService for manual dispatch and the reports of judge runs. */
export const judgingMethods = ({
  judging,
}: JudgingMethodsDeps): Pick<ServiceImpl<typeof scoring.ScorerService>, "dispatchScoring" | "reportScores"> => ({
  dispatchScoring: served(async (request: scoring.DispatchScoringRequest, caller) => ({
    results: await dispatchScoring(judging.dispatch, caller, request),
  })),
  reportScores: served(async ({ runUid, verdicts }: scoring.ReportScoresRequest, caller) => ({
    results: await reportScores(judging.report, caller, runUid, verdicts),
  })),
});
