import { type Caller, actorOf } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { invalidArgument, notFound } from "@millwright/errors";
import { isUuid, NIL_UUID } from "@millwright/ids";
import { isInScope, whyNotScoreable, type ScoredRun } from "../domain/eligibility.ts";
import type { Scorer } from "../domain/scorer.ts";
import { lockScorers, type ScorerReader } from "../store/scored-run-store.ts";
import { findFactory, type FactoryView, type ScopeDeps } from "./scope.ts";
import { factsOf, startAttempts, type StartedAttempt } from "./start-attempts.ts";

export type DispatchDeps = ScopeDeps & {
  readonly database: Database;
  readonly clock: Clock;
  readonly scorerReader: Pick<ScorerReader, "listByUids">;
  readonly runs: {
    requireVisible(caller: Caller, runUid: string): Promise<void>;
    describe(runUids: readonly string[]): Promise<ScoredRun[]>;
  };
};

export type DispatchRequest = {
  readonly factoryUid: string;
  readonly scorerUids: readonly string[];
  readonly runUids: readonly string[];
};

export type DispatchOutcome = {
  readonly scorerUid: string;
  readonly runUid: string;
  readonly status: "dispatched" | "failed";
  /** Always "": the judge run is created after the response. */
  readonly scoringRunUid: string;
  readonly error: string;
};

const UIDS_MAX = 100;
/** Number of concurrent visibility checks. */
const WIDTH = 10;

type Pair = { readonly scorer: Scorer; readonly run: ScoredRun };

/**
 * Starts scoring for every pair of one scorer and many runs, or of one run and many scorers. All pairs are checked
 * first, and again under lock in the transaction that starts them, so that an invalid selection starts nothing. Ignores
 * cool-down, sampling and earlier scores.
 *
 * Errors: those of `findFactory` · dispatch_invalid · scorer_not_found · run_not_found (absent or not visible to the
 * caller) · scorer_managed · run_not_scoreable · agent_out_of_scope (all invalid_argument).
 */
export async function dispatchScoring(
  deps: DispatchDeps,
  caller: Caller,
  request: DispatchRequest,
): Promise<DispatchOutcome[]> {
  const factory = await findFactory(deps, caller, request.factoryUid, "factory.manage");
  const scorerUids = readUids("scorer_uids", request.scorerUids);
  const runUids = readUids("run_ids", request.runUids);
  if (scorerUids.length > 1 && runUids.length > 1)
    throw invalidArgument("dispatch_invalid", "Either scorer_uids or run_ids must have exactly one entry.");
  const scorers = inOrder(scorerUids, await deps.scorerReader.listByUids(factory.uid, scorerUids), "scorer");
  for (let at = 0; at < runUids.length; at += WIDTH)
    await Promise.all(runUids.slice(at, at + WIDTH).map((uid) => deps.runs.requireVisible(caller, uid)));
  const runs = inOrder(runUids, await deps.runs.describe(runUids), "run");
  checkPairs(factory, pairsOf(scorers, runs));
  const requester = actorOf(caller);
  return deps.database.transaction(async (tx) => {
    const pairs = pairsOf(inOrder(scorerUids, await lockScorers(tx, factory.uid, scorerUids), "scorer"), runs);
    checkPairs(factory, pairs);
    const started = await startAttempts(
      tx,
      pairs.map(({ scorer, run }) => ({ scorer, run: factsOf(run), trigger: "manual", requester })),
      deps.clock.now(),
    );
    return pairs.map((pair, index) => outcomeOf(pair, started[index]!));
  });
}

const outcomeOf = ({ scorer, run }: Pair, { outcome }: StartedAttempt): DispatchOutcome => ({
  scorerUid: scorer.uid,
  runUid: run.uid,
  status: outcome === "started" ? "dispatched" : "failed",
  scoringRunUid: "",
  error: outcome === "started" ? "" : "An attempt of this scorer on this run is in flight.",
});

function readUids(field: string, given: readonly string[]): string[] {
  const uids = [...new Set(given.map((uid) => uid.trim().toLowerCase()))];
  const wrong = uids.find((uid) => !isUuid(uid) || uid === NIL_UUID);
  if (wrong !== undefined)
    throw invalidArgument(
      "dispatch_invalid",
      `${field} must be nonzero UUIDs (got ${JSON.stringify(wrong.slice(0, 100))}).`,
      { field },
    );
  if (uids.length === 0 || uids.length > UIDS_MAX) {
    throw invalidArgument(
      "dispatch_invalid",
      `${field} must have between 1 and ${UIDS_MAX} distinct entries (got ${uids.length}).`,
      { field },
    );
  }
  return uids;
}

/** Returns the records in the order of the uids. Errors: <resource>_not_found if a record is missing. */
function inOrder<T extends { readonly uid: string }>(
  uids: readonly string[],
  found: readonly T[],
  resource: string,
): T[] {
  const byUid = new Map<string, T>(found.map((each) => [each.uid, each]));
  return uids.map((uid) => {
    const each = byUid.get(uid);
    if (!each) throw notFound(resource);
    return each;
  });
}

const pairsOf = (scorers: readonly Scorer[], runs: readonly ScoredRun[]): Pair[] =>
  scorers.flatMap((scorer) => runs.map((run) => ({ scorer, run })));

function checkPairs(factory: FactoryView, pairs: readonly Pair[]): void {
  for (const { scorer, run } of pairs) {
    if (scorer.kind !== "user")
      throw invalidArgument(
        "scorer_managed",
        `Scorer ${scorer.uid} is managed by benchmarks and cannot be dispatched.`,
      );
    const obstacle = whyNotScoreable(run, factory);
    if (obstacle) throw invalidArgument(obstacle.reason, obstacle.message, { run_id: run.uid });
    if (!isInScope(run, scorer)) {
      throw invalidArgument(
        "agent_out_of_scope",
        `Scorer ${scorer.uid} is not configured for the agent of run ${run.uid}.`,
        { run_id: run.uid, scorer_uid: scorer.uid },
      );
    }
  }
}
