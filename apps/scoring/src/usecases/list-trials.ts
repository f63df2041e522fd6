import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { clampPageSize, type Cursors } from "@millwright/paging";
import { planOf } from "../domain/benchmark-plan.ts";
import { TRIAL_STATES, type BenchmarkRun } from "../domain/benchmark-run.ts";
import { TRIAL_INCLUDES, trialJson, type TrialRecord } from "../domain/trial-record.ts";
import type { TrialRecordStore } from "../store/trial-record-store.ts";
import { filterInvalid, readUids, readValues } from "./benchmark-filters.ts";
import { findBenchmarkRun, type BenchmarkRunRef, type BenchmarkRunScopeDeps } from "./benchmark-run-scope.ts";

export type ReadTrialsDeps = BenchmarkRunScopeDeps & {
  trials: Pick<TrialRecordStore, "list" | "find" | "findByRun">;
  cursors: Cursors;
};

export type ListTrialsRequest = BenchmarkRunRef & {
  readonly configurationUids: readonly string[];
  readonly states: readonly string[];
  readonly agentRunUid: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly include: readonly string[];
};

type Page = { readonly trials: JsonObject[]; readonly nextPageToken: string };

const PAGE = { default: 50, max: 100 } as const;
/** `queued` is accepted as a synonym of `pending`. */
const STATE_FILTER = [...TRIAL_STATES, "queued"] as const;

/**
 * Returns a page of the trials of a benchmark run, in the order of its manifest. If `agentRunUid` is given, returns the
 * trial that has an attempt with this run; no other filter is allowed.
 *
 * Errors: those of `findBenchmarkRun` · filter_invalid · invalid_cursor.
 */
export async function listTrials(deps: ReadTrialsDeps, caller: Caller, request: ListTrialsRequest): Promise<Page> {
  const run = await findBenchmarkRun(deps, caller, request, "factory.view");
  const include = readValues("include", request.include, TRIAL_INCLUDES);
  const configurationUids = readUids("configuration_uid", request.configurationUids).sort();
  const states = [
    ...new Set(
      readValues("state", request.states, STATE_FILTER).map((state) => (state === "queued" ? "pending" : state)),
    ),
  ].sort();
  const plan = planOf(run.manifest);
  if (request.agentRunUid !== "") {
    const trial = await findByAgentRun(deps, run, request);
    return {
      trials: trial ? [trialJson(trial, plan, include, request.agentRunUid.toLowerCase())] : [],
      nextPageToken: "",
    };
  }
  const bind = { run: run.uid, configurationUids, states };
  const [after] = request.pageToken === "" ? [-1] : (deps.cursors.open("trials", bind, request.pageToken) as [number]);
  const limit = clampPageSize(request.pageSize, PAGE);
  const rows = await deps.trials.list(run.uid, { configurationUids, states }, { after, limit: limit + 1 });
  const trials = rows.slice(0, limit);
  const last = rows.length > limit ? trials.at(-1) : undefined;
  return {
    trials: trials.map((trial) => trialJson(trial, plan, include)),
    nextPageToken: last ? deps.cursors.seal("trials", bind, [last.position]) : "",
  };
}

async function findByAgentRun(
  deps: ReadTrialsDeps,
  run: BenchmarkRun,
  request: ListTrialsRequest,
): Promise<TrialRecord | undefined> {
  const hasOther = request.configurationUids.length > 0 || request.states.length > 0 || request.pageToken !== "";
  if (hasOther) throw filterInvalid("agent_run_id cannot be combined with configuration_uid, state or cursor.");
  if (request.pageSize > 1)
    throw filterInvalid(`limit must be omitted or 1 with agent_run_id (got ${request.pageSize}).`);
  return isUuid(request.agentRunUid) ? deps.trials.findByRun(run.uid, request.agentRunUid.toLowerCase()) : undefined;
}

/** Returns one trial of a benchmark run. Errors: those of `findBenchmarkRun` · trial_not_found · filter_invalid. */
export async function getTrial(
  deps: ReadTrialsDeps,
  caller: Caller,
  request: BenchmarkRunRef & { trialUid: string; include: readonly string[] },
): Promise<JsonObject> {
  const run = await findBenchmarkRun(deps, caller, request, "factory.view");
  const include = readValues("include", request.include, TRIAL_INCLUDES);
  const trial = isUuid(request.trialUid) ? await deps.trials.find(run.uid, request.trialUid.toLowerCase()) : undefined;
  if (!trial) throw notFound("trial");
  return trialJson(trial, planOf(run.manifest), include);
}
