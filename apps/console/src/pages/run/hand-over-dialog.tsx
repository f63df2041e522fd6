import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { CopyButton, shellWord } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { SafeText, safeHref } from "../../ui/safe-text.tsx";

type RunItem = components["schemas"]["RunItem"];

/** How a person continues the work of a run on the own machine: its branches, its files, and a run for the result. */
export function HandOverDialog({ run, onClose }: { run: RunItem; onClose: () => void }): ReactNode {
  const { data, error } = useQuery({
    queryKey: ["run", run.run_id, "handoff"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/agent/runs/{runId}/handoff/attachments", { params: { path: { runId: run.run_id } }, signal }),
      ),
  });
  const commands = commandsOf(run);
  return (
    <Dialog title="Continue on your machine" className="wide" onClose={onClose}>
      <div className="body">
        <p>
          In a clone of the repository, take over the branch, and execute your command as a run of the platform, so that
          the team sees it:
        </p>
        <div className="line">
          <pre className="json" tabIndex={0} role="region" aria-label="Commands">
            <SafeText>{commands}</SafeText>
          </pre>
          <CopyButton text={commands} label="commands" />
        </div>
        {error && <ErrorView error={error} />}
        {data && data.attachments.length > 0 && (
          <>
            <h3>Files that the agent left</h3>
            <ul className="artifacts">
              {data.attachments.map(({ attachment_id: id, filename, download_url: url }) => (
                <li key={id}>
                  <a href={safeHref(url)} download>
                    <SafeText>{filename}</SafeText>
                  </a>
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Dialog>
  );
}

function commandsOf({ artifacts = [], title }: RunItem): string {
  const branches = artifacts.flatMap((artifact) =>
    artifact.artifact_type === "PULL_REQUEST" ? [artifact.data.branch] : [],
  );
  return [
    ...branches.flatMap((branch) => [`git fetch origin ${shellWord(branch)}`, `git switch ${shellWord(branch)}`]),
    `npx millwright run local --title ${shellWord(`Continue: ${title}`)} -- npm test`,
  ].join("\n");
}
