import { z } from "zod";
import { serviceCaller } from "@millwright/caller";
import { DomainError, isDomainError } from "@millwright/errors";
import type { PageLinks } from "../pages/page-links.ts";
import { redirect, route, timestamp, uuid, type Route } from "../rest/index.ts";
import { onBehalf, type Neighbours } from "../clients/neighbours.ts";
import { present } from "@millwright/json";
import { isoTime } from "./json-values.ts";

const SourceLinks = z
  .object({ run_url: z.string().optional().describe("Page of the root run, when a live task is bound to it."), pull_request_urls: z.array(z.string()).optional() })
  .meta({ id: "ArtifactSourceLinks" });

const Artifact = z
  .object({ artifact_uid: z.string(), artifact_type: z.enum(["PLAN", "SCREENSHOT", "FILE"]), created_at: timestamp(), data: z.looseObject({}), source_links: SourceLinks.optional() })
  .meta({ id: "Artifact" });

const artifactParams = z.object({ artifactUid: uuid() });

/** What runs leave behind. Public artifacts need no key (spec §5.3). */
export function artifactRoutes({ artifacts, tasks }: Pick<Neighbours, "artifacts" | "tasks">, links: Pick<PageLinks, "runUrl">): Route[] {
  /** Whether a live task is bound to the root run. Who may not see tasks sees none. */
  const isOfTask = async (factoryUid: string, runUid: string, input: Parameters<typeof onBehalf>[0]): Promise<boolean> => {
    if (factoryUid === "") return false;
    try {
      return (await tasks.getTaskByRun({ factoryUid, runUid }, onBehalf(input))).task !== undefined;
    } catch (error) {
      if (isDomainError(error) && (error.kind === "not_found" || error.kind === "permission_denied")) return false;
      throw error;
    }
  };
  const read = (input: { params: { artifactUid: string }; caller: Parameters<typeof onBehalf>[0]["caller"] | undefined; request: Parameters<typeof onBehalf>[0]["request"] }) => {
    const caller = input.caller ?? serviceCaller("gateway", input.request.requestId);
    return artifacts.getArtifact({ artifactUid: input.params.artifactUid, anonymous: input.caller === undefined }, onBehalf({ caller, request: input.request }));
  };
  return [
    route({
      method: "GET",
      path: "/agent/artifacts/{artifactUid}",
      summary: "Read an artifact",
      description: "A signed download URL for files and screenshots, the content of a plan.",
      auth: "optional",
      errors: [403],
      params: artifactParams,
      response: Artifact,
      handler: async (input) => {
        const { artifact, data = {}, source } = await read(input);
        const sourceLinks = present({
          run_url: source && input.caller && (await isOfTask(source.factoryUid, source.rootRunUid, { caller: input.caller, request: input.request })) ? links.runUrl(source.rootRunUid) : undefined,
          pull_request_urls: source && source.pullRequestUrls.length > 0 ? source.pullRequestUrls : undefined,
        });
        return {
          artifact_uid: artifact!.uid, artifact_type: artifact!.artifactType as "PLAN", created_at: isoTime(artifact!.createdAt!), data,
          ...present({ source_links: Object.keys(sourceLinks).length > 0 ? sourceLinks : undefined }),
        };
      },
    }),
    route({
      method: "GET",
      path: "/agent/artifacts/{artifactUid}/download",
      summary: "Download a file or screenshot",
      auth: "optional",
      errors: [403],
      params: artifactParams,
      responses: { 302: { description: "`Location` is a signed, time-limited URL" } },
      handler: async (input) => {
        const { downloadUrl } = await read(input);
        if (!downloadUrl) throw new DomainError({ kind: "not_found", reason: "artifact_not_downloadable", message: "This artifact has no file." });
        return redirect(downloadUrl, { "cache-control": "private, no-store" });
      },
    }),
    route({
      method: "PATCH",
      path: "/agent/artifacts/{artifactUid}",
      summary: "Make an artifact public or private",
      description: "Ours.",
      verbs: ["artifact.manage"],
      errors: [403],
      params: artifactParams,
      body: z.object({ public: z.boolean() }),
      response: z.object({ artifact_uid: z.string(), public: z.boolean() }),
      handler: async (input) => {
        const { artifact } = await artifacts.updateArtifact({ artifactUid: input.params.artifactUid, public: input.body.public }, onBehalf(input));
        return { artifact_uid: artifact!.uid, public: artifact!.public };
      },
    }),
  ];
}
