import { create } from "@bufbuild/protobuf";
import type { z } from "zod";
import type { Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { route, type Route } from "../../rest/index.ts";
import type { IdentityOperations } from "../../identity/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { CreatedRun, CreateRunRequest } from "./create-run-schemas.ts";
import { ownAgentOf, ownerOf } from "./run-owner.ts";

export type CreateRunRoutesDeps = {
  upstreams: Pick<Upstreams, "runs">;
  /** `findPrincipal` throws on_behalf_of_refused (permission_denied). */
  agents: Pick<IdentityOperations["agents"], "known" | "findPrincipal">;
};

/** The body contains up to five attachments of 10 MB each in base64. */
const CREATE_BODY_BYTES_MAX = 70 * 1024 * 1024;

/** Returns the routes that create runs: the published path, and its plural. */
export function createRunRoutes({ upstreams: { runs }, agents }: CreateRunRoutesDeps): Route[] {
  const createRun = (path: string) =>
    route({
      method: "POST",
      path,
      summary: "Start a run",
      description: "Queues a run of a cloud agent. The prompt is required unless a skill or a conversation is given.",
      verbs: ["run.create"],
      idempotent: true,
      teamHeader: true,
      errors: [403, 404, 409],
      bodyBytesMax: CREATE_BODY_BYTES_MAX,
      timeoutMs: 60_000,
      body: CreateRunRequest,
      response: CreatedRun,
      handler: async (input) => {
        const request = runRequest(input.body, input.caller, input.request.idempotency?.key);
        const { on_behalf_of: member } = input.body;
        if (member !== undefined)
          request.creatorUid = await agents.findPrincipal(input.caller, request.ownerUid, member);
        const { ownerType, ownerUid: teamUid, agentUid, agentName } = request;
        const knownAgent =
          ownerType === "team" && agentName === undefined
            ? await agents.known(input.caller, { teamUid, agentUid })
            : undefined;
        const response = await runs.createRuns({ runs: [request], ...omitUndefined({ knownAgent }) }, onBehalf(input));
        return createdRun(response.runs[0]!);
      },
    });
  return [createRun("/agent/run"), createRun("/agent/runs")];
}

/** Returns the request for the orchestrator, with the owner of the run and its deduplication key. */
function runRequest(
  body: z.output<typeof CreateRunRequest>,
  caller: Caller,
  key: string | undefined,
): orchestrator.RunRequest {
  const parentRunUid = body.parent_run_id ?? caller.run?.runUid;
  return create(orchestrator.RunRequestSchema, {
    ...ownerOf(body.team, caller),
    config: body.config ?? {},
    mode: body.mode ?? "",
    interactive: body.interactive ?? false,
    metadata: body.metadata ?? {},
    attachments: [...(body.attachments ?? []), ...(body.images ?? []).map(named)].map((file) => ({
      fileName: file.file_name,
      mimeType: file.mime_type,
      data: Buffer.from(file.data, "base64"),
    })),
    source: caller.run ? "ORCHESTRATION" : "API",
    ...omitUndefined({
      prompt: body.prompt,
      title: body.title,
      skill: body.skill,
      agentUid: body.agent_identity_uid ?? (body.agent_name === undefined ? ownAgentOf(caller) : undefined),
      agentName: body.agent_name,
      conversationUid: body.conversation_id,
      parentRunUid,
      ...idempotencyOf(caller, key),
    }),
  });
}

/**
 * Returns the deduplication key of a create. A key sent with a run token becomes a cause key, which does not expire: a
 * tool call creates at most one run.
 */
export function idempotencyOf(caller: Caller, key: string | undefined): { causeKey?: string; idempotencyKey?: string } {
  if (key === undefined) return {};
  return caller.run ? { causeKey: `${caller.run.runUid}:${key}` } : { idempotencyKey: key };
}

/**
 * Returns the response to a create. Its state is always QUEUED, so that a repeat returns the same response as the first
 * request.
 */
export const createdRun = ({ run, atCapacity }: orchestrator.CreatedRun): z.input<typeof CreatedRun> => ({
  run_id: run!.uid,
  task_id: run!.uid,
  state: "QUEUED",
  at_capacity: atCapacity ? true : undefined,
});

/** Returns the image with a file name. The default is its position and type: "image-1.png". */
const named = <T extends { file_name?: string | undefined; mime_type: string }>(
  image: T,
  index: number,
): T & { file_name: string } => ({
  ...image,
  file_name: image.file_name ?? `image-${index + 1}.${/^image\/([a-z]+)/.exec(image.mime_type)?.[1] ?? "bin"}`,
});
