import { teamsWith, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import type { TeamEvent, TeamEventQuery } from "../domain/team-event.ts";

export type TeamEventsDeps = {
  readonly listTeamEvents: (
    query: TeamEventQuery & { readonly after: number; readonly limit: number },
  ) => Promise<readonly TeamEvent[]>;
  /** The event log of this service, which contains the events. */
  readonly eventLog: {
    /** Returns the newest sequence number; everything committed before the call is included. */
    head(): Promise<number>;
    /** Resolves when the log has grown, after `timeoutMs`, or when aborted; never rejects. */
    growth(timeoutMs: number, signal: AbortSignal): Promise<void>;
  };
  readonly clock: Clock;
  readonly timings: { readonly keepAliveMs: number; readonly pollMs: number };
};

/** `teamUid`: only events of this team. A team that the caller is not a member of has no events. */
export type TeamEventsRequest = { readonly teamUid?: string; readonly runUids: readonly string[] };

const RUNS_MAX = 100;
const BATCH = 200;

/**
 * Returns events of the caller's teams after a sequence number, oldest first. Errors: too_many_runs (invalid_argument).
 */
export async function listTeamEvents(
  deps: TeamEventsDeps,
  caller: Caller,
  request: TeamEventsRequest,
  after: number,
  limit: number,
): Promise<readonly TeamEvent[]> {
  const query = queryOf(caller, request);
  await deps.eventLog.head(); // the log then includes what the caller committed before
  return deps.listTeamEvents({ ...query, after, limit });
}

export type TeamEventBatch = { readonly events: readonly TeamEvent[]; readonly after: number };

/**
 * Yields the events of the caller's teams after a sequence number (absent: from now on), then every further event as it
 * is committed, in order and without gaps. The first batch is empty and contains the position at which the stream
 * begins; later empty batches are keep-alives. Ends when `signal` is aborted.
 *
 * Errors: too_many_runs (invalid_argument), before the first batch.
 */
export async function* watchTeamEvents(
  deps: TeamEventsDeps,
  caller: Caller,
  request: TeamEventsRequest,
  from: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<TeamEventBatch> {
  const query = queryOf(caller, request);
  let after = from ?? (await deps.eventLog.head());
  yield { events: [], after };
  let sentAtMs = deps.clock.monotonicMs();
  while (!signal.aborted) {
    const seen = new AbortController();
    // Subscribes before reading: an event that is committed in between wakes the loop.
    const grown = deps.eventLog.growth(
      Math.min(deps.timings.pollMs, deps.timings.keepAliveMs),
      AbortSignal.any([signal, seen.signal]),
    );
    const events = await deps.listTeamEvents({ ...query, after, limit: BATCH });
    after = events.at(-1)?.sequence ?? after;
    if (events.length > 0 || deps.clock.monotonicMs() - sentAtMs >= deps.timings.keepAliveMs) {
      yield { events, after };
      sentAtMs = deps.clock.monotonicMs();
    }
    if (events.length > 0) seen.abort();
    await grown;
  }
}

function queryOf(caller: Caller, { teamUid, runUids }: TeamEventsRequest): TeamEventQuery {
  if (runUids.length > RUNS_MAX)
    throw invalidArgument("too_many_runs", `run_uids must have at most ${RUNS_MAX} entries (got ${runUids.length}).`);
  const teamUids = teamsWith(caller, "run.view").filter((uid) => teamUid === undefined || uid === teamUid);
  return {
    teamUids,
    runUids,
    within: caller.run ? { rootRunUid: caller.run.rootRunUid, factoryUid: caller.run.factoryUid } : undefined,
  };
}
