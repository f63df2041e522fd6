import type { ReactNode } from "react";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { parsePatch } from "diff";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { CopyButton, CopyCommands, shellWord } from "../../ui/copy.tsx";
import { DiffView, linesOfHunks } from "../../ui/diff-view.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { count } from "../../ui/money.ts";
import { Card, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";

type PullRequest = components["schemas"]["RunPullRequest"];

const LOOKS: Readonly<Record<PullRequest["status"], string>> = {
  open: "good",
  draft: "",
  merged: "busy",
  closed: "bad",
  unknown: "",
};

/** A pull request of a local repository: description, changed files and diff. */
export default function PullRequestPage(): ReactNode {
  const path = getRouteApi("/runs/$runId/pull-requests/$pullRequestUid").useParams();
  const {
    data: pr,
    error,
    refetch,
  } = useQuery({
    queryKey: ["run", path.runId, "pull-request", path.pullRequestUid],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/runs/{runId}/pull-requests/{pullRequestUid}", { params: { path }, signal })),
  });
  if (!pr)
    return error ? (
      <Page title="Pull request">
        <ErrorView error={error} onRetry={() => void refetch()} />
      </Page>
    ) : (
      <p className="soft">Loading…</p>
    );
  return (
    <Page
      title={`${pr.title} #${pr.number}`}
      subtitle={
        <span className="run-line">
          <span className={`badge ${LOOKS[pr.status]}`}>{pr.status}</span>
          <SafeText>{`${pr.owner}/${pr.repo}`}</SafeText>
          <code>
            <SafeText>{`${pr.head_branch} → ${pr.base_branch}`}</SafeText>
          </code>
          <span>
            opened <Time at={pr.created_at} />
          </span>
          <Link to="/runs/$runId" params={{ runId: pr.run_id }} search={(old) => old}>
            The run that opened it
          </Link>
        </span>
      }
      actions={<CopyCommands path={`/agent/runs/${path.runId}/pull-requests/${path.pullRequestUid}`} />}
    >
      {pr.body !== "" && (
        <Card title="Description">
          <Markdown>{pr.body}</Markdown>
        </Card>
      )}
      <Changes pr={pr} />
      <Card title="Merge" actions={<CopyButton text={mergeCommands(pr)} label="merge commands" />}>
        <p className="soft">
          In a clone of <SafeText>{`${pr.owner}/${pr.repo}`}</SafeText>, whose remote is <code>origin</code>:
        </p>
        <pre className="json" tabIndex={0} role="region" aria-label="Merge commands">
          <SafeText>{mergeCommands(pr)}</SafeText>
        </pre>
      </Card>
    </Page>
  );
}

function Changes({ pr }: { pr: PullRequest }): ReactNode {
  if (pr.diff === "") return <p className="soft">The code host shows the diff.</p>;
  return (
    <>
      {parsePatch(pr.diff).map((file, index) => {
        const path =
          (file.newFileName === "/dev/null" ? file.oldFileName : file.newFileName)?.replace(/^[ab]\//, "") ?? "";
        const counts = pr.files.find((each) => each.path === path);
        return (
          <Card
            key={index}
            title={
              <span className="mono">
                <SafeText>{path}</SafeText>
              </span>
            }
            actions={
              counts && <span className="soft small">{`+${count(counts.additions)} −${count(counts.deletions)}`}</span>
            }
          >
            <DiffView label={`Change of ${path}`} lines={linesOfHunks(file.hunks)} />
          </Card>
        );
      })}
    </>
  );
}

/** Returns the commands that merge a pull request: the repository on the code host is bare. */
function mergeCommands({ base_branch: baseBranch, head_branch: headBranch }: PullRequest): string {
  const base = shellWord(baseBranch);
  const remote = (branch: string): string => shellWord(`origin/${branch}`);
  return [
    "git fetch origin",
    `git switch ${base}`,
    `git merge --ff-only ${remote(baseBranch)}`,
    `git merge ${remote(headBranch)}`,
    `git push origin ${base}`,
  ].join("\n");
}
