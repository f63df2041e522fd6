import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { scoring } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { deleteScorer, updateScorer, type ChangeScorerDeps } from "../usecases/change-scorer.ts";
import { createScorer, type CreateScorerDeps } from "../usecases/create-scorer.ts";
import { getScorerMetrics, type GetScorerMetricsDeps } from "../usecases/get-scorer-metrics.ts";
import { listResults, type ListResultsDeps } from "../usecases/list-results.ts";
import { listRunScores, type ListRunScoresDeps } from "../usecases/list-run-scores.ts";
import { listScorers, type ListScorersDeps } from "../usecases/list-scorers.ts";
import {
  deleteSelfImprovement,
  getSelfImprovement,
  putSelfImprovement,
  type SelfImprovementDeps,
} from "../usecases/self-improvement.ts";
import { judgingMethods, type JudgingMethodsDeps } from "./judging-methods.ts";
import {
  readSelfImprovement,
  toMetricsMessage,
  toResultMessage,
  toRunScoreMessage,
  toSelfImprovementMessage,
} from "./result-messages.ts";
import { readMask, readScorer, readSettings, toListedMessage, toScorerMessage } from "./scorer-messages.ts";

export type ScorersDeps = CreateScorerDeps &
  ChangeScorerDeps &
  ListScorersDeps &
  ListResultsDeps &
  GetScorerMetricsDeps &
  ListRunScoresDeps &
  SelfImprovementDeps;
export type ScorerRoutesDeps = ScorersDeps & JudgingMethodsDeps;

/** Registers ScorerService: scorers, their results and the reports of judge runs. */
export function scorerRoutes(router: ConnectRouter, deps: ScorerRoutesDeps): void {
  router.service(scoring.ScorerService, {
    ...judgingMethods(deps),
    createScorer: served(async ({ scorer, idempotencyKey }: scoring.CreateScorerRequest, caller) => {
      const given = readScorer(scorer);
      return {
        scorer: toScorerMessage(
          await createScorer(deps, caller, {
            factoryUid: given.factoryUid,
            settings: readSettings(given),
            idempotencyKey,
          }),
        ),
      };
    }),
    listScorers: served(async (request: scoring.ListScorersRequest, caller) => ({
      scorers: (await listScorers(deps, caller, request)).map(toListedMessage),
    })),
    updateScorer: served(async ({ scorer, updateMask }: scoring.UpdateScorerRequest, caller) => {
      const given = readScorer(scorer);
      const ref = { factoryUid: given.factoryUid, scorerUid: given.uid };
      return {
        scorer: toScorerMessage(
          await updateScorer(deps, caller, ref, readSettings(given), readMask(updateMask?.paths ?? [])),
        ),
      };
    }),
    deleteScorer: served(async (request: scoring.DeleteScorerRequest, caller) => {
      await deleteScorer(deps, caller, request);
      return {};
    }),
    listResults: served(async (request: scoring.ListResultsRequest, caller) => {
      const { scorer, results, nextPageToken } = await listResults(deps, caller, request);
      return {
        results: results.map((result) => toResultMessage(result, scorer, request.includeReasons)),
        nextPageToken,
      };
    }),
    getScorerMetrics: served(async ({ startDate, endDate, ...request }: scoring.GetScorerMetricsRequest, caller) => {
      const range = { start: startDate && timestampDate(startDate), end: endDate && timestampDate(endDate) };
      return toMetricsMessage(await getScorerMetrics(deps, caller, { ...request, ...range }), request.includeCost);
    }),
    listRunScores: served(async ({ runUid }: scoring.ListRunScoresRequest, caller) => ({
      scores: (await listRunScores(deps, caller, runUid)).map(toRunScoreMessage),
    })),
    getSelfImprovement: served(async (request: scoring.GetSelfImprovementRequest, caller) => ({
      selfImprovement: toSelfImprovementMessage(await getSelfImprovement(deps, caller, request)),
    })),
    putSelfImprovement: served(async ({ factoryUid, selfImprovement }: scoring.PutSelfImprovementRequest, caller) => {
      const ref = { factoryUid, scorerUid: selfImprovement?.scorerUid ?? "" };
      return {
        selfImprovement: toSelfImprovementMessage(
          await putSelfImprovement(deps, caller, ref, readSelfImprovement(selfImprovement)),
        ),
      };
    }),
    deleteSelfImprovement: served(async (request: scoring.DeleteSelfImprovementRequest, caller) => {
      await deleteSelfImprovement(deps, caller, request);
      return {};
    }),
  });
}
