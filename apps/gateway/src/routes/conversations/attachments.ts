import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { route, type Route, type RouteInput } from "../../rest/index.ts";
import { runParams } from "../runs/runs.ts";
import { conversationParams } from "./conversation-params.ts";
import type { FollowupTarget } from "./followups.ts";

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

type RouteCall = Pick<RouteInput, "request"> & {
  caller: NonNullable<RouteInput["caller"]>;
  body: z.output<typeof NewAttachments>;
};

/** Returns the routes that prepare the upload of files for follow-ups. */
export function attachmentRoutes({ conversations }: Pick<Upstreams, "conversations">): Route[] {
  const prepare = async (input: RouteCall, target: FollowupTarget) => {
    const files = input.body.files.map(({ filename, mime_type }) => ({ fileName: filename, mimeType: mime_type }));
    const { runUid, attachments } = await conversations.prepareAttachments({ ...target, files }, onBehalf(input));
    return { runUid, response: { attachments: attachments.map(preparedRecord) } };
  };
  return [
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
