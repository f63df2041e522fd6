import { textAt } from "@millwright/code-host-events";
import { countAt, storableTextAt, timeAt } from "./payload-values.ts";
import { isAddress, type PullRequestFacts } from "./pull-request-fact.ts";

/** Returns what a local repository reports of a pull request; undefined: it is not merged, which needs no fact. */
export function localFacts(item: unknown): PullRequestFacts | undefined {
  const [url, repoFullName, prNumber] = [textAt(item, "url"), textAt(item, "repository"), countAt(item, "number")];
  const mergedAt = timeAt(item, "merged_at");
  if (!mergedAt || !isAddress(url, repoFullName, prNumber)) return undefined;
  return {
    pullRequest: {
      provider: "LOCAL",
      url,
      repoFullName,
      prNumber,
      updatedAt: mergedAt,
      authorLogin: null,
      openedAt: null, // when the run reported it
      mergedAt,
      status: { state: "merged", title: storableTextAt(item, "title"), closedAt: null },
      size: null,
    },
    activities: [],
  };
}
