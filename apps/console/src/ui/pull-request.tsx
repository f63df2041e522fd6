import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { SafeText, safeHref } from "./safe-text.tsx";

const LOOKS = { open: "good", draft: "", merged: "busy plain", closed: "bad" } as const;

/** The state of a pull request. */
export const PullRequestState = ({ state }: { state: keyof typeof LOOKS }): ReactNode => (
  <span className={`badge plain ${LOOKS[state]}`}>{state}</span>
);

type Named = {
  readonly repo_full_name: string;
  readonly pr_number: number;
  readonly title: string | null;
  readonly url: string;
};

/** The title of a pull request, which links to it, and its repository and number. */
export function PullRequestName({ pullRequest }: { pullRequest: Named }): ReactNode {
  const name = `${pullRequest.repo_full_name}#${pullRequest.pr_number}`;
  return (
    <>
      <a href={safeHref(pullRequest.url)} className="truncate">
        <SafeText>{pullRequest.title ?? name}</SafeText>
      </a>
      <span className="soft small">
        <SafeText>{name}</SafeText>
      </span>
    </>
  );
}

/** Links to the runs that reported a pull request. */
export const RunLinks = ({ runs }: { runs: readonly { readonly run_id: string }[] }): ReactNode =>
  runs.map(({ run_id: id }, index) => (
    <span key={id}>
      {index > 0 && ", "}
      <Link to="/runs/$runId" params={{ runId: id }} className="mono">
        {id.slice(-8)}
      </Link>
    </span>
  ));
