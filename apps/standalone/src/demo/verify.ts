import type { ApiClient } from "@millwright/api-client";
import type { Artifact, DemoRun, Task } from "./journey.ts";
import type { Outcome } from "./summary.ts";

/** Checks the outcome of the demo. Throws an Error that states the first mismatch. */
export async function verify(seen: {
  api: ApiClient;
  task: Task;
  runs: DemoRun[];
  branches: string[];
  isScripted: boolean;
}): Promise<Outcome> {
  const { api, task, runs, branches, isScripted } = seen;
  for (const run of runs)
    must(run.state === "SUCCEEDED", `run "${run.title}" ended ${run.state}: ${run.status_message?.message ?? ""}`);
  must(isScripted ? runs.length === 2 : runs.length >= 2, `the tree has ${runs.length} runs instead of two`);
  must(task.stage === "REVIEW", `the task is in ${task.stage} instead of REVIEW`);

  const pullRequest = artifact(task.outputs, "PULL_REQUEST");
  const branch = String(pullRequest.data["branch"]);
  must(branches.includes(branch), `the branch ${branch} was not pushed`);
  const implementer =
    runs.find(({ artifacts }) => artifacts?.some(({ artifact_type: type }) => type === "PULL_REQUEST")) ?? runs[1]!;
  const reportLinks = isScripted ? await verifyDocuments(api, implementer) : {};
  must((await api.download(`/agent/runs/${implementer.run_id}/transcript`)).trim() !== "", "the transcript is empty");
  for (const run of runs) {
    if (isScripted) must(run.request_usage?.inference_cost_usd !== undefined, `run "${run.title}" has no cost`);
    else must(run.request_usage !== undefined, `run "${run.title}" has no usage`);
  }

  const view = new URL(implementer.session_link!).search;
  const pullRequestUrl = String(pullRequest.data["url"]);
  const diff = await textOf(`${pullRequestUrl}.diff${view}`);
  must(diff.includes("b/src/total.js"), "the pull request does not show a change of src/total.js");
  if (isScripted) must(diff.includes("quantity >= BULK_QUANTITY"), "the pull request does not show the change");
  return {
    task,
    runs,
    diff,
    links: {
      "pull request": `${pullRequestUrl}${view}`,
      "foreman's run": runs[0]!.session_link!,
      implementer: implementer.session_link!,
      ...reportLinks,
    },
  };
}

/**
 * Checks the artifacts that the implementer's script creates besides its change. Not called for real models, whose
 * artifacts vary.
 */
async function verifyDocuments(api: ApiClient, implementer: DemoRun): Promise<Record<string, string>> {
  artifact(implementer.artifacts ?? [], "PLAN");
  const report = artifact(implementer.artifacts ?? [], "FILE");
  const link = (
    await api.get<{ data: { download_url: string } }>(`/agent/artifacts/${String(report.data["artifact_uid"])}`)
  ).data.download_url;
  must((await textOf(link)).includes("# pass 3"), "the test report does not show three passing tests");
  return { "test report": link };
}

function artifact(artifacts: Artifact[], type: string): Artifact {
  const found = artifacts.find((one) => one.artifact_type === type);
  if (!found) throw new Error(`The demo failed: there is no ${type} artifact.`);
  return found;
}

async function textOf(url: string): Promise<string> {
  const response = await fetch(url);
  must(response.ok, `${new URL(url).pathname} returns ${response.status}`);
  return response.text();
}

/** Throws an Error with the text `otherwise` unless the condition is true. */
export function must(isTrue: boolean, otherwise: string): void {
  if (!isTrue) throw new Error(`The demo failed: ${otherwise}.`);
}
