import type { orchestrator } from "@millwright/contracts";
import { page } from "./layout.ts";
import { markup, type Markup } from "./markup.ts";

/** Returns the page of a pull request of a local repository: its description and its diff. */
export function pullRequestPage(pr: orchestrator.GetPullRequestResponse, runLink: string): string {
  return page(
    `${pr.title} #${pr.number}`,
    markup`<h1>${pr.title} <span class="meta">#${String(pr.number)}</span></h1>
<p><span class="state ${pr.status}">${pr.status}</span> <span class="meta">${pr.owner}/${pr.repo} · ${pr.headBranch} → ${pr.baseBranch} · ${pr.headSha.slice(0, 10)}</span>
· <a href="${runLink}">the run that opened it</a></p>
<div class="message">${pr.body}</div>
<h2>Files</h2><table>${pr.files.map((file) => markup`<tr><td>${file.path}</td><td class="add">+${String(file.additions)}</td><td class="del">−${String(file.deletions)}</td></tr>`)}</table>
<h2>Change</h2><pre>${pr.diff.split("\n").map(diffLine)}</pre>
<h2>Merge</h2>
<p class="meta">In a clone of ${pr.owner}/${pr.repo}, whose remote is <code>origin</code>:</p>
<pre>${mergeCommands(pr)}</pre>`,
  );
}

/**
 * Returns the commands that merge a pull request. The repository on the code host is bare, so the merge is made in a
 * clone and pushed.
 */
function mergeCommands({ baseBranch, headBranch }: orchestrator.GetPullRequestResponse): string {
  const base = shellWord(baseBranch);
  const remote = (branch: string): string => shellWord(`origin/${branch}`);
  const update = ["git fetch origin", `git switch ${base}`, `git merge --ff-only ${remote(baseBranch)}`];
  return [...update, `git merge ${remote(headBranch)}`, `git push origin ${base}`].join("\n");
}

/** Quotes a branch name as one shell word; git allows characters in it that a shell interprets. */
const shellWord = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

function diffLine(line: string): Markup {
  const kind = /^(\+\+\+|---|diff |index )/.test(line)
    ? "hunk"
    : line.startsWith("+")
      ? "add"
      : line.startsWith("-")
        ? "del"
        : line.startsWith("@@")
          ? "hunk"
          : "";
  return markup`<span class="${kind}">${line}</span>\n`;
}
