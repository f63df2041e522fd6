import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  cursor,
  pageInfo,
  PageInfo,
  pageLimit,
  route,
  timestamp,
  UserProfile,
  type Route,
  type RouteInput,
} from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";
import type { FindProfiles, Profile } from "../identity/profiles.ts";
import { PROMPT_LIMIT, RunMode, TEXT_BODY_BYTES_MAX } from "../runs/run-schemas.ts";
import { runParams } from "../runs/runs.ts";
import { conversationParams } from "./conversation-params.ts";

/** The orchestrator copies attachments when a follow-up first names them. */
const COPY_TIMEOUT_MS = 60_000;

const MODE =
  "Applies if the follow-up is queued before the agent starts or begins a new execution; a live session ignores it. " +
  "Without it the run keeps its mode, except that a follow-up to a plan that awaits approval approves the plan (`normal`).";

const NewFollowup = z
  .object({
    message: z
      .string()
      .optional()
      .meta({
        description: `May be empty with attachments. ${PROMPT_LIMIT} The limit includes the prompt and the follow-ups that the agent has not received yet.`,
      }),
    mode: RunMode.optional().meta({ description: MODE }),
    attachments: z
      .array(
        z.object({
          attachment_id: z.string(),
          file_name: z.string().optional().meta({ description: "Name of the file for the agent, instead of its own." }),
        }),
      )
      .max(25)
      .optional()
      .meta({ description: "Prepared and uploaded files of the run. Any other id: 422 `unknown_attachment`." }),
  })
  .meta({ id: "NewFollowup" });

const FollowupResponse = z.object({
  outcome: z.enum(["live_session", "queued_prompt", "handoff_execution", "queue_pending"]),
  followup_id: z.string().nullable(),
});

/** A follow-up and its delivery state. Millwright extension. */
const Followup = z
  .object({
    followup_id: z.string(),
    message: z.string(),
    created_at: timestamp(),
    creator: UserProfile.optional(),
    state: z.enum(["queued", "delivered", "undeliverable"]),
    delivered_at: timestamp().optional(),
    reason: z.string().optional(),
  })
  .meta({ id: "Followup" });

/** The run, or the conversation whose newest run, a follow-up is for. */
export type FollowupTarget = { readonly runUid: string } | { readonly conversationUid: string };
type RouteCall = Pick<RouteInput, "request"> & {
  caller: NonNullable<RouteInput["caller"]>;
  body: z.output<typeof NewFollowup>;
};

/** Returns the routes that send follow-ups to runs and conversations, and that list them. */
export function followupRoutes(
  { conversations }: Pick<Upstreams, "conversations">,
  findProfiles: FindProfiles,
): Route[] {
  const followUp = async (input: RouteCall, target: FollowupTarget) => {
    const { message = "", mode = "", attachments = [] } = input.body;
    const attachmentNames = Object.fromEntries(
      attachments.flatMap(({ attachment_id: uid, file_name: name }) => (name === undefined ? [] : [[uid, name]])),
    );
    const request = {
      ...target,
      message,
      mode,
      attachmentUids: attachments.map((attachment) => attachment.attachment_id),
      attachmentNames,
      idempotencyKey: input.request.idempotency?.key ?? "",
    };
    const { outcome, followupUid, runUid } = await conversations.createFollowup(
      request,
      onBehalf(input, { timeoutMs: COPY_TIMEOUT_MS }),
    );
    return {
      runUid,
      response: { outcome: outcome as z.input<typeof FollowupResponse>["outcome"], followup_id: followupUid ?? null },
    };
  };
  return [
    route({
      method: "POST",
      path: "/agent/runs/{runId}/followups",
      summary: "Send a follow-up to a run",
      verbs: ["run.manage"],
      errors: [403, 409, 413, 422],
      idempotent: true,
      timeoutMs: COPY_TIMEOUT_MS,
      params: runParams,
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      body: NewFollowup,
      response: FollowupResponse,
      handler: async (input) => (await followUp(input, { runUid: input.params.runId })).response,
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/followups",
      summary: "List a run's follow-ups",
      extension: true,
      description:
        "Oldest first. Every follow-up becomes `delivered`, or `undeliverable` with a reason such as `run_cancelled` if its run ends before the agent receives it.",
      verbs: ["run.view"],
      params: runParams,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ followups: z.array(Followup), page_info: PageInfo }),
      handler: async (input) => {
        const { limit, cursor: pageToken = "" } = input.query;
        const page = await conversations.listFollowups(
          { runUid: input.params.runId, pageSize: limit, pageToken },
          onBehalf(input),
        );
        const profiles = await findProfiles([...new Set(page.followups.map(({ authorUid }) => authorUid))]);
        return {
          followups: page.followups.map((followup) => followupRecord(followup, profiles)),
          page_info: pageInfo(page.nextPageToken),
        };
      },
    }),
    route({
      method: "POST",
      path: "/agent/conversations/{conversationId}/followups",
      summary: "Send a follow-up to the newest run of a conversation",
      verbs: ["run.manage"],
      errors: [403, 409, 413, 422],
      idempotent: true,
      timeoutMs: COPY_TIMEOUT_MS,
      params: conversationParams,
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      body: NewFollowup,
      response: FollowupResponse.extend({ run_id: z.string() }),
      handler: async (input) => {
        const { runUid, response } = await followUp(input, { conversationUid: input.params.conversationId });
        return { ...response, run_id: runUid };
      },
    }),
  ];
}

const followupRecord = (
  { uid, text, authorUid, createdAt, state, deliveredAt, reason }: orchestrator.Followup,
  profiles: ReadonlyMap<string, Profile>,
): z.input<typeof Followup> => ({
  followup_id: uid,
  message: text,
  created_at: isoTime(createdAt!),
  state: state as "queued",
  ...omitUndefined({
    creator: profiles.get(authorUid),
    delivered_at: deliveredAt && isoTime(deliveredAt),
    reason: reason || undefined,
  }),
});
