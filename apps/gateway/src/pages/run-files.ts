import { z } from "zod";
import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { onBehalf, type Upstreams } from "../clients/upstreams.ts";
import { pathUid, Reply, route, type RequestInfo, type Route } from "../rest/index.ts";
import { asText } from "./markup.ts";
import type { PageLinks } from "./page-links.ts";
import { storedContent } from "./stored-content.ts";
import { linkViewer } from "../sessions/link-viewer.ts";

const viewQuery = z.object({ view: z.string().optional() });

/**
 * Returns the routes of files of a run that links name: the content of a plan, the download of another artifact, and
 * the diff of a pull request. A session link, an API key and a browser session give access.
 */
export function runFileRoutes({ artifacts }: Pick<Upstreams, "artifacts">, links: PageLinks): Route[] {
  const viewerOf = linkViewer(links);
  const callerOf = async (request: RequestInfo, runUid: string, view: string | undefined): Promise<Caller> =>
    (view === undefined ? undefined : viewerOf(view, runUid, request.requestId)) ?? request.authenticateAgain();
  return [
    route({
      method: "GET",
      path: "/runs/{runId}/artifacts/{artifactUid}",
      root: true,
      auth: "none",
      summary: "The content of a run's plan, file or screenshot",
      params: z.object({ runId: pathUid("run"), artifactUid: pathUid("artifact") }),
      query: viewQuery,
      handler: async ({ params, query, request }) => {
        const caller = await callerOf(request, params.runId, query.view);
        const { artifact, data, downloadUrl } = await artifacts.getArtifact(
          { artifactUid: params.artifactUid },
          onBehalf({ caller, request }),
        );
        if (artifact!.runUid !== params.runId) throw notFound("artifact");
        return downloadUrl
          ? storedContent(downloadUrl, links.publicUrl, request.signal)
          : plainText(asText(data?.["content"]));
      },
    }),
    route({
      method: "GET",
      path: "/runs/{runId}/pull-requests/{pullRequest}.diff",
      root: true,
      auth: "none",
      summary: "The diff of a local repository's pull request",
      params: z.object({ runId: pathUid("run"), pullRequest: pathUid("pull_request") }),
      query: viewQuery,
      handler: async ({ params, query, request }) => {
        const caller = await callerOf(request, params.runId, query.view);
        const pr = await artifacts.getPullRequest(
          { pullRequestUid: params.pullRequest },
          onBehalf({ caller, request }),
        );
        // a session link gives access to its own run, not to other runs of the team
        if (pr.runUid !== params.runId) throw notFound("pull_request");
        return plainText(pr.diff);
      },
    }),
  ];
}

const plainText = (text: string): Reply => new Reply(200, text, { "content-type": "text/plain; charset=utf-8" });
