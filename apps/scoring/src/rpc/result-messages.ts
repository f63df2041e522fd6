import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { scoring } from "@millwright/contracts";
import { optionalTimestamp } from "@millwright/rpc";
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
  score: result.score ?? undefined,
  scoringRunTimeMs: result.judgeTimeMs === null ? undefined : BigInt(result.judgeTimeMs),
  scoringRunUsage: (result.judgeUsage ?? undefined) as JsonObject | undefined,
  reasonStatus: includeReasons ? result.reasonStatus : undefined,
  reason: includeReasons ? (result.reason ?? undefined) : undefined,
  failureCode: result.failure?.code,
  failureMessage: result.failure?.message,
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
  failureCode: score.failure?.code,
});

const scoreOf = ({ classification, scoredAt }: Result) => ({
  classification: classification ?? undefined,
  scoredAt: optionalTimestamp(scoredAt),
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
    costMicros: includeCost ? BigInt(costMicros) : undefined,
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
  lastRunAt: optionalTimestamp(view.lastRunAt),
});
