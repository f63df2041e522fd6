import { z } from "zod";
import { teamsWith, type Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import type { Cursors } from "@millwright/paging";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  cursor,
  pageInfo,
  PageInfo,
  pageLimit,
  queryInt,
  queryList,
  route,
  timestamp,
  type Route,
} from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";
import { eventStreamReply, lastEventId, SSE_KEEP_ALIVE, sseEvent, wantsStream } from "../formats/server-sent-events.ts";

const TYPES = [
  "run_created",
  "run_queued",
  "run_pending",
  "run_claimed",
  "run_in_progress",
  "run_succeeded",
  "run_failed",
  "run_errored",
  "run_blocked",
  "run_cancelled",
] as const;

const TeamEvent = z
  .object({
    sequence: z.int(),
    uid: z.string(),
    event_type: z.enum(TYPES),
    run_id: z.string(),
    occurred_at: timestamp(),
  })
  .meta({
    id: "TeamEvent",
    description: "A run of a team was created or changed its state. `sequence` increases with gaps.",
  });

export type TeamEventRoutesDeps = {
  readonly upstreams: Pick<Upstreams, "runEvents">;
  readonly cursors: Cursors;
  /** After how many milliseconds without reading a client of a stream is disconnected. */
  readonly stuckMs?: number | undefined;
};

/** Returns the route of run events of teams, in commit order. */
export function teamEventRoutes({ upstreams: { runEvents }, cursors, stuckMs }: TeamEventRoutesDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/agent/events",
      summary: "List the run events of a team",
      description:
        "Events of the active team, or of all teams of the caller. Events of personal runs are only in the run's own stream. Retained as long as the runs. `Accept: text/event-stream` returns an unbounded live stream, which starts after `Last-Event-ID` or `since`, otherwise with new events. The first event, `open`, contains the start sequence.",
      verbs: ["run.view"],
      teamHeader: true,
      query: z.object({
        run_ids: queryList(z.string().min(1)).optional().meta({ description: "Only of these runs, at most 100." }),
        since: queryInt({ min: 0, max: Number.MAX_SAFE_INTEGER })
          .optional()
          .meta({ description: "Only after this sequence." }),
        limit: pageLimit(100, 500),
        cursor: cursor(),
      }),
      response: z.object({ events: z.array(TeamEvent), page_info: PageInfo }),
      timeoutMs: 0,
      handler: async (input) => {
        const { query, caller, request } = input;
        const upstreamRequest = { teamUid: caller.activeTeamUid ?? "", runUids: query.run_ids ?? [] };
        if (wantsStream(request)) {
          const after = lastEventId(request) ?? query.since;
          const watched = runEvents.watchTeamEvents(
            {
              ...upstreamRequest,
              ...omitUndefined({ afterSequence: after === undefined ? undefined : BigInt(after) }),
            },
            onBehalf(input, { timeoutMs: 0 }),
          );
          return eventStreamReply(request, teamEventStream(watched, request.authenticateAgain), stuckMs);
        }
        const after =
          query.cursor === undefined
            ? (query.since ?? 0)
            : (cursors.open("team-events", upstreamRequest, query.cursor)[0] as number);
        const { events, hasMore } = await runEvents.listTeamEvents(
          { ...upstreamRequest, afterSequence: BigInt(after), pageSize: query.limit },
          onBehalf(input),
        );
        const last = events.at(-1);
        const next =
          hasMore && last ? cursors.seal("team-events", upstreamRequest, [Number(last.sequence)]) : undefined;
        return { events: events.map(teamEvent), page_info: pageInfo(next) };
      },
    }),
  ];
}

/**
 * Yields team events as server-sent events. Authenticates the caller before each batch, and ends the stream if the
 * batch contains an event of a team that the caller may no longer view. The client reconnects and receives only its
 * remaining teams.
 */
async function* teamEventStream(
  watched: AsyncIterable<orchestrator.WatchTeamEventsResponse>,
  authenticateAgain: () => Promise<Caller>,
): AsyncGenerator<string> {
  let isOpen = false;
  try {
    for await (const { events, afterSequence } of watched) {
      const teams: ReadonlySet<string> = new Set(teamsWith(await authenticateAgain(), "run.view"));
      if (!events.every(({ teamUid }) => teams.has(teamUid))) return;
      if (!isOpen) yield sseEvent(Number(afterSequence), "open", { sequence: Number(afterSequence) });
      else if (events.length === 0) yield SSE_KEEP_ALIVE;
      isOpen = true;
      for (const event of events.map(teamEvent)) yield sseEvent(event.sequence, event.event_type, event);
    }
  } catch {
    return; // the stream never sends `event: end`; the client reconnects
  }
}

const teamEvent = ({
  sequence,
  uid,
  eventType,
  runUid,
  occurredAt,
}: orchestrator.TeamEvent): z.input<typeof TeamEvent> => ({
  sequence: Number(sequence),
  uid,
  event_type: eventType as (typeof TYPES)[number],
  run_id: runUid,
  occurred_at: isoTime(occurredAt!),
});
