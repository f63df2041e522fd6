import { z } from "zod";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { pathUid, queryFlag, redirect, route, timestamp, type Route } from "../../rest/index.ts";
import { Conversation } from "./conversation-schemas.ts";
import { conversationParams } from "./conversation-params.ts";
import { isoTime } from "../formats/json-values.ts";

/** Signed links are issued to one caller and expire, so caches must not store them. */
const NO_STORE = { "cache-control": "private, no-store" };

/** Returns the routes that read a conversation: the messages, transcript, screenshots and commands of all its runs. */
export function conversationRoutes({
  conversations,
  artifacts,
}: Pick<Upstreams, "conversations" | "artifacts">): Route[] {
  return [
    route({
      method: "GET",
      path: "/agent/conversations/{conversationId}",
      summary: "Read the normalised messages and steps of a conversation",
      description: "Contains the runs that the caller may view. A conversation whose run has not started has no steps.",
      verbs: ["run.view"],
      errors: [422],
      params: conversationParams,
      response: Conversation,
      handler: async (input) => {
        const { conversationUid, steps } = await conversations.getConversation(
          { conversationUid: input.params.conversationId },
          onBehalf(input),
        );
        return { conversation_id: conversationUid, steps: steps as z.input<typeof Conversation>["steps"] };
      },
    }),
    route({
      method: "GET",
      path: "/agent/conversations/{conversationId}/transcript",
      summary: "Download the transcript of a third-party harness",
      description: "The transcript of the newest run. Conversations of the platform's own harness have none: 400.",
      verbs: ["run.view"],
      errors: [400],
      params: conversationParams,
      responses: { 302: { description: "`Location` is a signed URL of the transcript, valid for 15 minutes" } },
      handler: async (input) => {
        const { url } = await conversations.getTranscriptUrl(
          { conversationUid: input.params.conversationId },
          onBehalf(input),
        );
        return redirect(url, NO_STORE);
      },
    }),
    route({
      method: "GET",
      path: "/agent/conversations/{conversationId}/screenshots/{screenshotUid}/download",
      summary: "Download a screenshot of a conversation",
      verbs: ["run.view"],
      params: conversationParams.extend({ screenshotUid: pathUid("screenshot") }),
      responses: { 302: { description: "`Location` is a signed URL of the image, valid for 15 minutes" } },
      handler: async (input) => {
        const { conversationId: conversationUid, screenshotUid } = input.params;
        return redirect(
          (await artifacts.getScreenshotUrl({ conversationUid, screenshotUid }, onBehalf(input))).url,
          NO_STORE,
        );
      },
    }),
    route({
      method: "GET",
      path: "/agent/conversations/{conversationId}/block-snapshot",
      summary: "Download the commands of a conversation with their terminal output",
      description:
        "JSON: `{version, conversation_id, blocks: [{id, run_id, kind, command, output, exit_code, state, started_at, …}]}`, oldest first, without control sequences. Written when an execution ends, and on request during an execution. 404 until the first execution has started.",
      verbs: ["run.view"],
      params: conversationParams,
      query: z.object({ redirect: queryFlag(true, "`false`: returns the link as JSON instead of a redirect.") }),
      response: z.object({ download_url: z.url(), expires_at: timestamp() }),
      responses: { 302: { description: "`Location` is a signed URL of the snapshot, valid for 15 minutes" } },
      handler: async (input) => {
        const { url, expiresAt } = await conversations.getBlockSnapshotUrl(
          { conversationUid: input.params.conversationId },
          onBehalf(input),
        );
        return input.query.redirect ? redirect(url, NO_STORE) : { download_url: url, expires_at: isoTime(expiresAt!) };
      },
    }),
  ];
}
