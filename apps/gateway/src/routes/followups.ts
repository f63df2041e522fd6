import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import { present } from "@millwright/json";
import { onBehalf, type Neighbours } from "../clients/neighbours.ts";
import { cursor, pageInfo, PageInfo, pageLimit, pathUid, route, timestamp, UserProfile, type Route, type RouteInput } from "../rest/index.ts";
import { isoTime } from "./json-values.ts";
import type { FindProfiles, Profile } from "./profiles.ts";
import { RunMode } from "./run-schemas.ts";
import { runParams } from "./runs.ts";

export const conversationParams = z.object({ conversationId: pathUid("conversation") });

const NewFollowup = z
  .object({
    message: z.string().optional(),
    mode: RunMode.optional(),
    attachments: z.array(z.object({ attachment_id: z.string(), file_name: z.string().optional() })).max(25).optional(),
  })
  .meta({ id: "NewFollowup" });

/** fields-runs §6.12. */
const FollowupAnswer = z.object({ outcome: z.enum(["live_session", "queued_prompt", "handoff_execution", "queue_pending"]), followup_id: z.string().nullable() });

/** Ours: a follow-up and its one fate. */
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
type Asked = Pick<RouteInput, "request"> & { caller: NonNullable<RouteInput["caller"]>; body: z.output<typeof NewFollowup> };

/** What is said to runs after their prompt, and the ends of their turns (spec §4 "Agent runs and conversations"). */
export function followupRoutes({ runs }: Pick<Neighbours, "runs">, findProfiles: FindProfiles): Route[] {
  const followUp = async (input: Asked, target: Target) => {
    const { message = "", mode = "", attachments = [] } = input.body;
    const request = { ...target, message, mode, attachmentUids: attachments.map((one) => one.attachment_id), idempotencyKey: input.request.idempotency?.key ?? "" };
    const { outcome, followupUid, runUid } = await runs.createFollowup(request, onBehalf(input));
    return { runUid, answer: { outcome: outcome as z.input<typeof FollowupAnswer>["outcome"], followup_id: followupUid ?? null } };
  };
  return [
    route({
      method: "POST",
      path: "/agent/runs/{runId}/followups",
      summary: "Send a run a message",
      verbs: ["run.manage"],
      errors: [403, 409, 422],
      idempotent: true,
      params: runParams,
      body: NewFollowup,
      response: FollowupAnswer,
      handler: async (input) => (await followUp(input, { runUid: input.params.runId })).answer,
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/followups",
      summary: "What became of a run's follow-ups",
      description: "Ours, oldest first. Every follow-up ends as `delivered` or, when its run ended before the agent could see it, `undeliverable` with the reason, such as `run_cancelled`.",
      verbs: ["run.view"],
      params: runParams,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ followups: z.array(Followup), page_info: PageInfo }),
      handler: async (input) => {
        const { limit, cursor: pageToken = "" } = input.query;
        const page = await runs.listFollowups({ runUid: input.params.runId, pageSize: limit, pageToken }, onBehalf(input));
        const profiles = await findProfiles([...new Set(page.followups.map(({ authorUid }) => authorUid))]);
        return { followups: page.followups.map((one) => followupRecord(one, profiles)), page_info: pageInfo(page.nextPageToken) };
      },
    }),
    route({
      method: "POST",
      path: "/agent/runs/{runId}/interrupt",
      summary: "End the current turn of a run",
      description: "The run goes on and takes follow-ups; without one it is BLOCKED after its idle time. Runs on the platform's own harness only.",
      verbs: ["run.manage"],
      errors: [400, 403, 409, 422],
      params: runParams,
      status: 202,
      response: z.object({ run_id: z.string() }),
      handler: async (input) => ({ run_id: (await runs.interruptRun({ runUid: input.params.runId }, onBehalf(input))).runUid }),
    }),
    route({
      method: "POST",
      path: "/agent/conversations/{conversationId}/followups",
      summary: "Send the newest run of a conversation a message",
      verbs: ["run.manage"],
      errors: [403, 409, 422],
      idempotent: true,
      params: conversationParams,
      body: NewFollowup,
      response: FollowupAnswer.extend({ run_id: z.string() }),
      handler: async (input) => {
        const { runUid, answer } = await followUp(input, { conversationUid: input.params.conversationId });
        return { ...answer, run_id: runUid };
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
      handler: async (input) => ({ run_id: (await runs.interruptRun({ conversationUid: input.params.conversationId }, onBehalf(input))).runUid }),
    }),
  ];
}

const followupRecord = ({ uid, text, authorUid, createdAt, state, deliveredAt, reason }: orchestrator.Followup, profiles: ReadonlyMap<string, Profile>): z.input<typeof Followup> => ({
  followup_id: uid,
  message: text,
  created_at: isoTime(createdAt!),
  state: state as "queued",
  ...present({ creator: profiles.get(authorUid), delivered_at: deliveredAt && isoTime(deliveredAt), reason: reason || undefined }),
});
