import { z } from "zod";
import type { Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { SharedReads } from "@millwright/database";
import type { Cursors } from "@millwright/paging";
import {
  cursor,
  EXTENSION,
  pageInfo,
  PageInfo,
  pageLimit,
  queryInt,
  redirect,
  route,
  timestamp,
  type Route,
} from "../../rest/index.ts";
import { call } from "@millwright/rpc";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import type { PageLinks } from "../../pages/page-links.ts";
import { omitUndefined } from "@millwright/json";
import { isoTime } from "../formats/json-values.ts";
import { Conversation } from "../conversations/conversation-schemas.ts";
import { harnessUsage, HarnessUsage } from "./harness-usage.ts";
import { eventStream } from "./run-event-stream.ts";
import { runParams } from "./runs.ts";
import { eventStreamReply, lastEventId, wantsStream } from "../formats/server-sent-events.ts";

const TimelineEventType = z
  .enum([
    "oz_run_created",
    "oz_run_claimed",
    "worker_container_ready",
    "shared_session_started",
    "agent_started",
    "oz_run_done",
    "oz_run_blocked",
    "oz_run_cancelled",
    "oz_run_failed",
    "oz_run_errored",
    "vm_shutdown",
  ])
  .meta({ id: "TimelineEventType" });

const TimelineEvent = z
  .object({
    event_uuid: z.uuid(),
    run_id: z.uuid(),
    event_type: TimelineEventType,
    occurred_at: timestamp(),
    execution_id: z.int().optional(),
    payload: z.looseObject({}).optional(),
  })
  .meta({ id: "TimelineEvent" });

const HandoffAttachment = z
  .object({ attachment_id: z.uuid(), filename: z.string(), download_url: z.url(), mime_type: z.string().optional() })
  .meta({ id: "HandoffAttachment" });

const RunEvent = z
  .object({
    seq: z.int(),
    uid: z.string(),
    kind: z.string(),
    occurred_at: timestamp(),
    execution_id: z.int().optional(),
    attempt: z.int().optional(),
    payload: z.looseObject({}),
  })
  .meta({ id: "RunEvent", ...EXTENSION, description: "An event of a run. `seq` starts at 1 without gaps." });

export type RunViewRoutesDeps = {
  readonly upstreams: Pick<Upstreams, "runs" | "conversations" | "runEvents">;
  readonly links: PageLinks;
  readonly cursors: Cursors;
  /** After how many milliseconds without reading a client of a stream is disconnected. */
  readonly stuckMs?: number | undefined;
};

/** The list of a run's events, in its cursors. */
const EVENTS = "run-events";

/**
 * Returns the routes that read a run's history: timeline, conversation, usage, transcript, handoff files and events.
 */
export function runViewRoutes({
  upstreams: { runs, conversations, runEvents },
  links,
  cursors,
  stuckMs,
}: RunViewRoutesDeps): Route[] {
  const visibility = new SharedReads<unknown>();
  /** Errors: run_not_found. Watchers with equal rights share the call, which none of them can cancel. */
  const assertVisible = (runUid: string, caller: Caller): Promise<unknown> =>
    visibility.read(JSON.stringify([runUid, { ...caller, requestId: "" }]), () =>
      runs.getRun({ runUid }, call(caller)),
    );
  return [
    route({
      method: "GET",
      path: "/agent/runs/{runId}/timeline",
      summary: "List the setup and lifecycle events of a run, oldest first",
      verbs: ["run.view"],
      params: runParams,
      response: z.object({ events: z.array(TimelineEvent) }),
      handler: async (input) => {
        const options = onBehalf(input);
        const [{ events }, { run }] = await Promise.all([
          conversations.getTimeline({ runUid: input.params.runId }, options),
          runs.getRun({ runUid: input.params.runId }, options),
        ]);
        const sessionLink = links.sessionLink(run!);
        return { events: events.map((event) => timelineEvent(event, sessionLink)) };
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/conversation",
      summary: "Read the normalised messages and steps of a run",
      verbs: ["run.view"],
      errors: [422],
      params: runParams,
      response: Conversation,
      handler: async (input) => {
        const { conversationUid, steps } = await conversations.getConversation(
          { runUid: input.params.runId },
          onBehalf(input),
        );
        return { conversation_id: conversationUid, steps: steps as z.input<typeof Conversation>["steps"] };
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/harness-usage",
      summary: "Read the usage that a third-party harness reported",
      description:
        "The latest snapshot, cumulative over the run; counters that the harness does not measure are absent, never zero. `available` is false until the harness reports tokens, and always for harnesses that report none, including the platform's own: see `request_usage` of the run.",
      verbs: ["run.view"],
      params: runParams,
      response: HarnessUsage,
      handler: async (input) => {
        const { runUid, conversationUid, usage } = await runs.getHarnessUsage(
          { runUid: input.params.runId },
          onBehalf(input),
        );
        return {
          available: usage !== undefined,
          run_id: runUid,
          conversation_id: conversationUid,
          ...(usage ? harnessUsage(usage) : {}),
        };
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/transcript",
      summary: "Download the transcript",
      verbs: ["run.view"],
      params: runParams,
      responses: {
        302: {
          description:
            "`Location` is a signed URL of the transcript, valid for 15 minutes: the transcript of a third-party harness after an execution has ended, otherwise all events of the run (JSON Lines)",
        },
      },
      handler: async (input) => {
        const { url } = await conversations.getTranscriptUrl({ runUid: input.params.runId }, onBehalf(input));
        return redirect(url, { "cache-control": "no-store" });
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/handoff/attachments",
      summary: "List files for continuing a run elsewhere",
      description:
        "The workspace saved by the newest ended execution, as a tar archive. Empty if none was saved. Requires run.manage.",
      verbs: ["run.manage"],
      errors: [403],
      params: runParams,
      response: z.object({ attachments: z.array(HandoffAttachment) }),
      handler: async (input) => {
        const { files } = await conversations.listHandoffFiles({ runUid: input.params.runId }, onBehalf(input));
        return {
          attachments: files.map((file) => ({
            attachment_id: file.uid,
            filename: file.fileName,
            download_url: file.downloadUrl,
            mime_type: file.mimeType,
          })),
        };
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/events",
      summary: "List the events of a run",
      extension: true,
      description:
        "`Accept: text/event-stream` returns a live stream, which `Last-Event-ID` resumes and `event: end` terminates when the run has ended. `event: text_delta` (`execution_id`, `attempt`, `step_id`, `offset`, `text`), without an id, contains text that the model is generating. The `model_step` event with the same `step_id` contains the full text.",
      verbs: ["run.view"],
      params: runParams,
      query: z.object({
        after: queryInt({ min: 0, max: Number.MAX_SAFE_INTEGER }).optional(),
        limit: pageLimit(100, 500),
        cursor: cursor(),
      }),
      response: z.object({ events: z.array(RunEvent), page_info: PageInfo }),
      timeoutMs: 0,
      handler: async (input) => {
        const { params, query, request } = input;
        const bind = { run: params.runId.toLowerCase() };
        const afterSeq = BigInt(
          query.cursor === undefined ? (query.after ?? 0) : (cursors.open(EVENTS, bind, query.cursor)[0] as number),
        );
        if (wantsStream(request)) {
          const from = BigInt(lastEventId(request) ?? afterSeq);
          await runs.getRun({ runUid: params.runId }, onBehalf(input));
          const watched = runEvents.watchRunEvents(
            { runUid: params.runId, afterSeq: from },
            onBehalf(input, { timeoutMs: 0 }),
          );
          const isStillVisible = async () => assertVisible(params.runId, await request.authenticateAgain());
          return eventStreamReply(request, eventStream(watched, runEvent, isStillVisible), stuckMs);
        }
        const { events, hasMore } = await runEvents.listRunEvents(
          { runUid: params.runId, afterSeq, pageSize: query.limit },
          onBehalf(input),
        );
        const last = events.at(-1);
        const next = hasMore && last ? cursors.seal(EVENTS, bind, [Number(last.seq)]) : undefined;
        return { events: events.map(runEvent), page_info: pageInfo(next) };
      },
    }),
  ];
}

/**
 * Returns the public record of a timeline event. The gateway adds the session's link, because the orchestrator does not
 * know the URLs of pages.
 */
const timelineEvent = (event: orchestrator.TimelineEvent, sessionLink: string): z.input<typeof TimelineEvent> => ({
  event_uuid: event.eventUuid,
  run_id: event.runUid,
  event_type: event.eventType as z.input<typeof TimelineEventType>,
  occurred_at: isoTime(event.occurredAt!),
  ...omitUndefined({
    execution_id: event.executionId === undefined ? undefined : Number(event.executionId),
    payload:
      event.eventType === "shared_session_started" ? { ...event.payload, session_link: sessionLink } : event.payload,
  }),
});

const runEvent = (event: orchestrator.RunEvent): z.input<typeof RunEvent> => ({
  seq: Number(event.seq),
  uid: event.uid,
  kind: event.kind,
  occurred_at: isoTime(event.occurredAt!),
  payload: event.payload ?? {},
  ...omitUndefined({
    execution_id: event.executionId === undefined ? undefined : Number(event.executionId),
    attempt: event.attempt,
  }),
});
