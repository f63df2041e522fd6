import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { scoring } from "@millwright/contracts";
import type { Result, RunScore } from "../domain/result.ts";
import { outcomeOf, type Scorer } from "../domain/scorer.ts";
import type { SelfImprovementSettings, SelfImprovementView } from "../domain/self-improvement.ts";
import type { ScorerMetrics } from "../usecases/get-scorer-metrics.ts";

export const toResultMessage = (
  result: Result,
  { threshold }: Scorer,
  includeReasons: boolean,
): MessageInitShape<typeof scoring.ScorerResultSchema> => ({
  runUid: result.runUid,
  attemptedAt: timestampFromDate(result.attemptedAt),
  attemptUid: result.attemptUid,
  status: result.status,
  isInFlight: result.isInFlight,
  outcome: result.score === null ? "" : outcomeOf(result.score, threshold),
  conversationUid: result.conversationUid ?? "",
  conversationTitle: result.title,
  scoringRunUid: result.judgeRunUid ?? "",
  ...scoreOf(result),
  ...(result.score !== null && { score: result.score }),
  ...(result.judgeTimeMs !== null && { scoringRunTimeMs: BigInt(result.judgeTimeMs) }),
  ...(result.judgeUsage && { scoringRunUsage: result.judgeUsage as JsonObject }),
  ...(includeReasons && { reasonStatus: result.reasonStatus }),
  ...(includeReasons && result.reason !== null && { reason: result.reason }),
  ...(result.failure && { failureCode: result.failure.code, failureMessage: result.failure.message }),
});

export const toRunScoreMessage = (score: RunScore): MessageInitShape<typeof scoring.RunScoreSchema> => ({
  scorerId: BigInt(score.scorerId),
  scorerUid: score.scorerUid,
  scorerName: score.scorerName,
  attemptStatus: score.status,
  isInFlight: score.isInFlight,
  attemptedAt: timestampFromDate(score.attemptedAt),
  triggerSource: score.triggerSource,
  scoringRunUid: score.judgeRunUid ?? "",
  ...scoreOf(score),
  ...(score.failure && { failureCode: score.failure.code }),
});

const scoreOf = ({ classification, scoredAt }: Result) => ({
  ...(classification !== null && { classification }),
  ...(scoredAt && { scoredAt: timestampFromDate(scoredAt) }),
});

export const toMetricsMessage = (
  { scorer, asOf, range, unit, periods }: ScorerMetrics,
  includeCost: boolean,
): MessageInitShape<typeof scoring.GetScorerMetricsResponseSchema> => ({
  teamUid: scorer.teamUid,
  asOf: timestampFromDate(asOf),
  startDate: timestampFromDate(range.start),
  endDate: timestampFromDate(range.end),
  groupByPeriod: unit,
  periods: periods.map(({ label, passCount, failCount, costMicros }) => ({
    label,
    passCount: BigInt(passCount),
    failCount: BigInt(failCount),
    ...(includeCost && { costMicros: BigInt(costMicros) }),
  })),
});

export const readSelfImprovement = (message: scoring.SelfImprovement | undefined): SelfImprovementSettings => ({
  failureThreshold: message?.failureThreshold ?? 0,
  failureAgeDays: message?.failureAgeDays ?? 0,
  runsPerWeek: message?.runsPerWeek ?? 0,
  costLimitMicros: Number(message?.costLimitMicros ?? 0n),
});

export const toSelfImprovementMessage = (
  view: SelfImprovementView,
): MessageInitShape<typeof scoring.SelfImprovementSchema> => ({
  scorerUid: view.scorerUid,
  failureThreshold: view.failureThreshold,
  failureAgeDays: view.failureAgeDays,
  runsPerWeek: view.runsPerWeek,
  costLimitMicros: BigInt(view.costLimitMicros),
  unreviewedFailures: view.unreviewedFailures,
  lastRunUid: view.lastRunUid ?? "",
  createdAt: timestampFromDate(view.createdAt),
  updatedAt: timestampFromDate(view.updatedAt),
  ...(view.lastRunAt && { lastRunAt: timestampFromDate(view.lastRunAt) }),
});
