import { z } from "zod";
import { commitAll, headOf, isDirty } from "../git/commit.ts";
import { nameOf, type WorkingCopy } from "../git/repository.ts";
import { sandboxGit } from "../git/sandbox-git.ts";
import { defineTool, type ToolContext } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

/**
 * Commits all changes, pushes the work branch, and has the platform open the pull request or adopt an existing one. A
 * second call updates the same pull request.
 */
export const pullRequest = defineTool({
  name: "pull_request",
  action: "open_pull_request",
  category: "integration",
  description:
    "Commits everything, pushes the work branch and opens its pull request. `repository` (owner/name) is needed only where several have changes.",
  isReadOnly: false,
  changes: "anything",
  input: z.object({
    title: z.string().min(1).max(256),
    body: z.string().max(65_536).optional(),
    repository: z.string().optional(),
  }),
  shown: ({ title }) => ({ title }),
  async run({ title, body = "", repository }, context) {
    const copy = await choose(repository, context);
    const { owner, name, workBranch } = copy.repository;
    const sha = await commitAll(
      context.workspace.sandbox,
      copy,
      body === "" ? title : `${title}\n\n${body}`,
      context.signal,
    );
    const ahead = await sandboxGit(
      context.workspace.sandbox,
      copy,
      ["rev-list", "--count", `${copy.baseSha}..${sha}`],
      { signal: context.signal },
    );
    if (ahead.trim() === "0")
      throw new ToolFailure(`${nameOf(copy.repository)} has no changes to open a pull request with.`);
    if (sha !== copy.pushedSha) {
      await context.push(copy, sha);
      context.record("pushed", { repository: nameOf(copy.repository), branch: workBranch, sha });
    }
    const opened = await context.platform.openPullRequest({
      owner,
      repo: name,
      headBranch: workBranch,
      headSha: sha,
      baseBranch: copy.baseBranch,
      title,
      body,
    });
    return { output: { url: opened.url, number: opened.number, branch: workBranch, sha } };
  },
});

async function choose(wanted: string | undefined, { workspace, signal }: ToolContext): Promise<WorkingCopy> {
  const { copies, sandbox } = workspace;
  const named = copies.filter(
    (copy) => wanted === undefined || nameOf(copy.repository).toLowerCase() === wanted.toLowerCase(),
  );
  if (named.length === 0)
    throw new ToolFailure(
      wanted === undefined ? "This run has no repository." : `This run has no repository ${wanted}.`,
    );
  if (named.length === 1) return named[0]!;
  const changed = [];
  for (const copy of named)
    if ((await isDirty(sandbox, copy, signal)) || (await headOf(sandbox, copy, signal)) !== copy.baseSha)
      changed.push(copy);
  if (changed.length !== 1)
    throw new ToolFailure(`Name the repository: ${changed.length === 0 ? "none has" : "several have"} changes.`);
  return changed[0]!;
}
