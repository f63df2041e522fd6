import { z } from "zod";
import { notFound } from "@millwright/errors";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { EXTENSION, pathUid, route, timestamp, type Route } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";

const LocalPullRequest = z
  .object({
    uid: z.string(),
    run_id: z.string(),
    owner: z.string(),
    repo: z.string(),
    number: z.int(),
    url: z.string(),
    title: z.string(),
    body: z.string(),
    head_branch: z.string(),
    base_branch: z.string(),
    head_sha: z.string(),
    status: z.enum(["open", "draft", "merged", "closed", "unknown"]),
    created_at: timestamp(),
    diff: z.string().meta({ description: "Unified diff. Empty if the code host shows it." }),
    files: z.array(z.object({ path: z.string(), additions: z.int(), deletions: z.int() })),
  })
  .meta({ id: "RunPullRequest", ...EXTENSION });

/** Returns the route of a pull request that a run opened. The console shows those of local repositories with it. */
export function runPullRequestRoutes({ artifacts }: Pick<Upstreams, "artifacts">): Route[] {
  return [
    route({
      method: "GET",
      path: "/agent/runs/{runId}/pull-requests/{pullRequestUid}",
      summary: "Read a pull request of a run with its diff",
      description: "The diff of a pull request on a code host other than a local repository is empty.",
      extension: true,
      verbs: ["run.view"],
      params: z.object({ runId: pathUid("run"), pullRequestUid: pathUid("pull_request") }),
      response: LocalPullRequest,
      handler: async (input) => {
        const pr = await artifacts.getPullRequest({ pullRequestUid: input.params.pullRequestUid }, onBehalf(input));
        // the link of a run gives access to that run, not to other runs of the team
        if (pr.runUid !== input.params.runId) throw notFound("pull_request");
        return {
          uid: pr.uid,
          run_id: pr.runUid,
          owner: pr.owner,
          repo: pr.repo,
          number: pr.number,
          url: pr.url,
          title: pr.title,
          body: pr.body,
          head_branch: pr.headBranch,
          base_branch: pr.baseBranch,
          head_sha: pr.headSha,
          status: pr.status as z.input<typeof LocalPullRequest>["status"],
          created_at: isoTime(pr.createdAt!),
          diff: pr.diff,
          files: pr.files.map(({ path, additions, deletions }) => ({ path, additions, deletions })),
        };
      },
    }),
  ];
}
