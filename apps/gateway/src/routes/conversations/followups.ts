import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  cursor,
  pageInfo,
  PageInfo,
  pageLimit,
  pathUid,
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

export const conversationParams = z.object({ conversationId: pathUid("conversation") });

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

const NewAttachments = z
  .object({
    files: z
      .array(z.object({ filename: z.string().min(1).max(255), mime_type: z.string().min(1).max(255) }))
      .min(1)
      .max(25),
  })
  .meta({ id: "NewAttachments" });

const PreparedAttachments = z.object({
  attachments: z.array(
    z
      .object({
        attachment_id: z.uuid(),
        upload_url: z.url(),
        upload_target: z.object({ url: z.url(), method: z.literal("PUT"), headers: z.record(z.string(), z.string()) }),
      })
      .meta({
        id: "PreparedAttachment",
        description: "PUT up to 25 MB to the URL within an hour, without authorization. The id is valid for 24 hours.",
      }),
  ),
});

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

type Target = { readonly runUid: string } | { readonly conversationUid: string };
type RouteCall = Pick<RouteInput, "request"> & {
  caller: NonNullable<RouteInput["caller"]>;
  body: z.output<typeof NewFollowup>;
};

/** Returns the routes that send follow-ups with attachments to runs, and that interrupt their current turn. */
export function followupRoutes(
  { runs, conversations }: Pick<Upstreams, "runs" | "conversations">,
  findProfiles: FindProfiles,
): Route[] {
  const followUp = async (input: RouteCall, target: Target) => {
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
  const prepare = async (
    input: Pick<RouteCall, "request" | "caller"> & { body: z.output<typeof NewAttachments> },
    target: Target,
  ) => {
    const files = input.body.files.map(({ filename, mime_type }) => ({ fileName: filename, mimeType: mime_type }));
    const { runUid, attachments } = await conversations.prepareAttachments({ ...target, files }, onBehalf(input));
    return { runUid, response: { attachments: attachments.map(preparedRecord) } };
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
      path: "/agent/runs/{runId}/interrupt",
      summary: "End the current turn of a run",
      description:
        "The run continues and accepts follow-ups. Without a follow-up it becomes BLOCKED after its idle timeout. Only for runs on the platform's own harness.",
      verbs: ["run.manage"],
      errors: [400, 403, 409, 422],
      params: runParams,
      status: 202,
      response: z.object({ run_id: z.string() }),
      handler: async (input) => ({
        run_id: (await runs.interruptRun({ runUid: input.params.runId }, onBehalf(input))).runUid,
      }),
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
    route({
      method: "POST",
      path: "/agent/runs/{runId}/attachments/prepare",
      summary: "Prepare attachments for a follow-up to a run",
      description:
        "Returns one upload URL per file, in the order of the request. A follow-up to this run then references the files by id.",
      verbs: ["run.manage"],
      errors: [403],
      params: runParams,
      body: NewAttachments,
      response: PreparedAttachments,
      handler: async (input) => (await prepare(input, { runUid: input.params.runId })).response,
    }),
    route({
      method: "POST",
      path: "/agent/conversations/{conversationId}/attachments/prepare",
      summary: "Prepare attachments for a follow-up to a conversation",
      description:
        "The attachments belong to the newest run. If a newer run is created before the follow-up, the follow-up gets 422 `unknown_attachment`.",
      verbs: ["run.manage"],
      errors: [403],
      params: conversationParams,
      body: NewAttachments,
      response: PreparedAttachments.extend({ run_id: z.string() }),
      handler: async (input) => {
        const { runUid, response } = await prepare(input, { conversationUid: input.params.conversationId });
        return { ...response, run_id: runUid };
      },
    }),
    route({
      method: "POST",
      path: "/agent/conversations/{conversationId}/interrupt",
      summary: "End the current turn of the newest run of a conversation",
      verbs: ["run.manage"],
      errors: [400, 403, 409, 422],
      params: conversationParams,
      status: 202,
      response: z.object({ run_id: z.string() }),
      handler: async (input) => ({
        run_id: (await runs.interruptRun({ conversationUid: input.params.conversationId }, onBehalf(input))).runUid,
      }),
    }),
  ];
}

const preparedRecord = ({
  uid,
  uploadUrl,
  uploadHeaders,
}: orchestrator.PreparedAttachment): z.input<typeof PreparedAttachments>["attachments"][number] => ({
  attachment_id: uid,
  upload_url: uploadUrl,
  upload_target: { url: uploadUrl, method: "PUT", headers: uploadHeaders },
});

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
