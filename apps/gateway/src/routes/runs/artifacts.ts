import { z } from "zod";
import { serviceCaller } from "@millwright/caller";
import { DomainError, isDomainError } from "@millwright/errors";
import type { PageLinks } from "../../pages/page-links.ts";
import { storedContent } from "../../pages/stored-content.ts";
import { redirect, route, timestamp, uuid, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { omitUndefined } from "@millwright/json";
import { isoTime } from "../formats/json-values.ts";

const SourceLinks = z
  .object({
    run_url: z.string().optional().describe("Page of the root run, if an active task is bound to it."),
    pull_request_urls: z.array(z.string()).optional(),
  })
  .meta({ id: "ArtifactSourceLinks" });

const text = () => z.string().optional();
const sharedBy = <T extends string, D extends z.ZodType>(type: T, data: D) => ({
  artifact_uid: z.uuid(),
  artifact_type: z.literal(type),
  created_at: timestamp(),
  data,
});
const file = { download_url: z.url(), expires_at: timestamp(), content_type: z.string(), description: text() };

const Artifact = z
  .discriminatedUnion("artifact_type", [
    z.object(
      sharedBy(
        "PLAN",
        z.object({
          content: z.string(),
          content_type: z.string(),
          document_uid: z.string(),
          notebook_uid: z.string(),
          title: text(),
          url: text(),
        }),
      ),
    ),
    z.object({ ...sharedBy("SCREENSHOT", z.object(file)), source_links: SourceLinks.optional() }),
    z.object({
      ...sharedBy(
        "FILE",
        z.object({
          ...file,
          filename: z.string(),
          filepath: text().meta({ description: "Absent for anonymous callers." }),
          title: text(),
          size_bytes: z.int().optional(),
        }),
      ),
      source_links: SourceLinks.optional(),
    }),
  ])
  .meta({ id: "Artifact" });

const artifactParams = z.object({ artifactUid: uuid() });

/** Returns the routes of artifacts of runs. Public artifacts are readable without a credential. */
export function artifactRoutes(
  { artifacts, tasks }: Pick<Upstreams, "artifacts" | "tasks">,
  links: Pick<PageLinks, "runUrl" | "publicUrl">,
): Route[] {
  /** Returns whether a live task is bound to the root run; false if the caller may not view tasks. */
  const isOfTask = async (
    factoryUid: string,
    runUid: string,
    input: Parameters<typeof onBehalf>[0],
  ): Promise<boolean> => {
    if (factoryUid === "") return false;
    try {
      return (await tasks.getTaskByRun({ factoryUid, runUid }, onBehalf(input))).task !== undefined;
    } catch (error) {
      if (isDomainError(error) && (error.kind === "not_found" || error.kind === "permission_denied")) return false;
      throw error;
    }
  };
  const read = (input: {
    params: { artifactUid: string };
    caller: Parameters<typeof onBehalf>[0]["caller"] | undefined;
    request: Parameters<typeof onBehalf>[0]["request"];
  }) => {
    const caller = input.caller ?? serviceCaller("gateway", input.request.requestId);
    return artifacts.getArtifact(
      { artifactUid: input.params.artifactUid, anonymous: input.caller === undefined },
      onBehalf({ caller, request: input.request }),
    );
  };
  /** Returns the signed URL of a file. Errors: those of `read`, artifact_not_downloadable. */
  const readUrl = async (input: Parameters<typeof read>[0]): Promise<string> => {
    const { downloadUrl } = await read(input);
    if (downloadUrl) return downloadUrl;
    throw new DomainError({
      kind: "not_found",
      reason: "artifact_not_downloadable",
      message: "This artifact has no file to download.",
    });
  };
  return [
    route({
      method: "GET",
      path: "/agent/artifacts/{artifactUid}",
      summary: "Read an artifact",
      verbs: ["run.view"],
      description: "Returns a signed download URL for files and screenshots, and the content of a plan.",
      auth: "optional",
      errors: [403],
      params: artifactParams,
      response: Artifact,
      handler: async (input) => {
        const { artifact, data = {}, source } = await read(input);
        const sourceLinks = omitUndefined({
          run_url:
            source &&
            input.caller &&
            (await isOfTask(source.factoryUid, source.rootRunUid, { caller: input.caller, request: input.request }))
              ? links.runUrl(source.rootRunUid)
              : undefined,
          pull_request_urls: source && source.pullRequestUrls.length > 0 ? source.pullRequestUrls : undefined,
        });
        return {
          artifact_uid: artifact!.uid,
          artifact_type: artifact!.artifactType,
          created_at: isoTime(artifact!.createdAt!),
          data,
          ...omitUndefined({ source_links: Object.keys(sourceLinks).length > 0 ? sourceLinks : undefined }),
        } as z.input<typeof Artifact>;
      },
    }),
    route({
      method: "GET",
      path: "/agent/artifacts/{artifactUid}/download",
      summary: "Download a file or screenshot",
      verbs: ["run.view"],
      auth: "optional",
      errors: [403],
      params: artifactParams,
      responses: { 302: { description: "`Location` is a signed, time-limited URL" } },
      handler: async (input) => redirect(await readUrl(input), { "cache-control": "private, no-store" }),
    }),
    route({
      method: "GET",
      path: "/agent/artifacts/{artifactUid}/content",
      summary: "Read the content of a file or screenshot from this server",
      description:
        "For pages that may not load files of other hosts, such as those of a bucket. Other clients use the download.",
      extension: true,
      verbs: ["run.view"],
      auth: "optional",
      errors: [403],
      params: artifactParams,
      responses: {
        200: { description: "The content, if files are stored in a bucket", contentType: "*/*" },
        302: {
          description: "`Location` is a signed, time-limited URL of this server, if files are stored in a directory",
        },
      },
      handler: async (input) => storedContent(await readUrl(input), links.publicUrl, input.request.signal),
    }),
    route({
      method: "PATCH",
      path: "/agent/artifacts/{artifactUid}",
      summary: "Make an artifact public or private",
      extension: true,
      verbs: ["artifact.manage"],
      errors: [403],
      params: artifactParams,
      body: z.object({ public: z.boolean() }),
      response: z.object({ artifact_uid: z.string(), public: z.boolean() }),
      handler: async (input) => {
        const { artifact } = await artifacts.updateArtifact(
          { artifactUid: input.params.artifactUid, public: input.body.public },
          onBehalf(input),
        );
        return { artifact_uid: artifact!.uid, public: artifact!.public };
      },
    }),
  ];
}
