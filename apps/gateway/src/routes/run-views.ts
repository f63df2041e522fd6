import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import {
  EXTENSION,
  pageInfo,
  PageInfo,
  pageLimit,
  queryInt,
  redirect,
  route,
  timestamp,
  type Route,
} from "../rest/index.ts";
import { onBehalf, type Upstreams } from "../clients/upstreams.ts";
import type { PageLinks } from "../pages/page-links.ts";
import { present } from "@millwright/json";
import { isoTime } from "./json-values.ts";
import { Conversation } from "./conversation-schemas.ts";
import { harnessUsage, HarnessUsage } from "./harness-usage.ts";
import { eventStream } from "./run-event-stream.ts";
import { runParams } from "./runs.ts";
import { eventStreamReply, lastEventId, wantsStream } from "./server-sent-events.ts";

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
  .meta({ id: "RunEvent", ...EXTENSION, description: "One thing that happened in a run. `seq` is gapless from 1." });

/**
 * Returns the routes that read a run's history: timeline, conversation, usage, transcript, handoff files and events.
 */
export function runViewRoutes({ runs }: Pick<Upstreams, "runs">, links: PageLinks, stuckMs?: number): Route[] {
  return [
    route({
      method: "GET",
      path: "/agent/runs/{runId}/timeline",
      summary: "Setup and lifecycle events, oldest first",
      verbs: ["run.view"],
      params: runParams,
      response: z.object({ events: z.array(TimelineEvent) }),
      handler: async (input) => {
        const options = onBehalf(input);
        const [{ events }, { run }] = await Promise.all([
          runs.getTimeline({ runUid: input.params.runId }, options),
          runs.getRun({ runUid: input.params.runId }, options),
        ]);
        const sessionLink = links.sessionLink(run!);
        return { events: events.map((event) => timelineEvent(event, sessionLink)) };
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/conversation",
      summary: "Normalised messages and steps",
      verbs: ["run.view"],
      errors: [422],
      params: runParams,
      response: Conversation,
      handler: async (input) => {
        const { conversationUid, steps } = await runs.getConversation({ runUid: input.params.runId }, onBehalf(input));
        return { conversation_id: conversationUid, steps: steps as z.input<typeof Conversation>["steps"] };
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/harness-usage",
      summary: "What a third-party harness says of its own usage",
      description:
        "The latest snapshot, cumulative over the run; numbers that the harness did not count are absent, never zero. `available` is false while it has counted no tokens, and for harnesses that publish none, the platform's own among them: see `request_usage` of the run.",
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
            "`Location` is a signed URL of the transcript, valid for 15 minutes: what a third-party harness has written down itself once an execution has ended, else everything that happened in the run (JSON Lines)",
        },
      },
      handler: async (input) => {
        const { url } = await runs.getTranscriptUrl({ runUid: input.params.runId }, onBehalf(input));
        return redirect(url, { "cache-control": "no-store" });
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/handoff/attachments",
      summary: "Files to go on with a run elsewhere",
      description:
        "The workspace that its newest ended execution saved, as a tar archive; none while there is none. For those who may manage the run.",
      verbs: ["run.manage"],
      errors: [403],
      params: runParams,
      response: z.object({ attachments: z.array(HandoffAttachment) }),
      handler: async (input) => {
        const { files } = await runs.listHandoffFiles({ runUid: input.params.runId }, onBehalf(input));
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
      summary: "Everything that happened in a run",
      extension: true,
      description:
        "With `Accept: text/event-stream` the events come live, resume by `Last-Event-ID`, and end with `event: end` once the run has ended. Between them, without an id, `event: text_delta` (`execution_id`, `attempt`, `step_id`, `offset`, `text`) tells what the model is just saying; the `model_step` event of that `step_id` has the whole text.",
      verbs: ["run.view"],
      params: runParams,
      query: z.object({
        after: queryInt({ min: 0, max: Number.MAX_SAFE_INTEGER }).optional(),
        limit: pageLimit(100, 500),
        cursor: z
          .string()
          .regex(/^\d{1,15}$/)
          .optional(),
      }),
      response: z.object({ events: z.array(RunEvent), page_info: PageInfo }),
      timeoutMs: 0,
      handler: async (input) => {
        const { params, query, request } = input;
        const afterSeq = BigInt(query.cursor ?? query.after ?? 0);
        if (wantsStream(request)) {
          const from = BigInt(lastEventId(request) ?? afterSeq);
          await runs.getRun({ runUid: params.runId }, onBehalf(input));
          const watched = runs.watchRunEvents(
            { runUid: params.runId, afterSeq: from },
            onBehalf(input, { timeoutMs: 0 }),
          );
          const assertVisible = async () =>
            runs.getRun({ runUid: params.runId }, onBehalf({ caller: await request.authenticateAgain(), request }));
          return eventStreamReply(request, eventStream(watched, runEvent, assertVisible), stuckMs);
        }
        const { events, hasMore } = await runs.listRunEvents(
          { runUid: params.runId, afterSeq, pageSize: query.limit },
          onBehalf(input),
        );
        const last = events.at(-1);
        return { events: events.map(runEvent), page_info: pageInfo(hasMore && last ? String(last.seq) : undefined) };
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
  ...present({
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
  ...present({
    execution_id: event.executionId === undefined ? undefined : Number(event.executionId),
    attempt: event.attempt,
  }),
});
