import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { listRuns } from "../../api/queries.ts";
import { useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Card } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { runQuery } from "./run-query.ts";

type RunItem = components["schemas"]["RunItem"];
const DESCENDANTS_MAX = 100;

/** The tree that the run belongs to, from its root. Hidden if the run has no relatives. */
export function RunTree({ run }: { run: RunItem }): ReactNode {
  const rootId = run.root_run_id;
  const { isLinkViewer } = useSession();
  const { data: root } = useQuery({
    ...runQuery(rootId),
    enabled: rootId !== run.run_id && !isLinkViewer,
  });
  const { data } = useQuery({
    queryKey: ["runs", "tree", rootId],
    enabled: !isLinkViewer,
    queryFn: ({ signal }) =>
      listRuns({ ancestor_run_id: rootId, sort_by: "created_at", sort_order: "asc", limit: DESCENDANTS_MAX }, signal),
  });
  const top = rootId === run.run_id ? run : root;
  if (!data || !top || data.runs.length === 0) return null;
  return (
    <Card
      title="Run tree"
      actions={
        data.page_info.has_next_page && (
          <Link to="/runs" search={{ ancestor_run_id: rootId }}>
            All
          </Link>
        )
      }
    >
      <ul className="tree">
        <Branch run={top} runs={data.runs} currentId={run.run_id} />
      </ul>
    </Card>
  );
}

function Branch({ run, runs, currentId }: { run: RunItem; runs: readonly RunItem[]; currentId: string }): ReactNode {
  const children = runs.filter(({ parent_run_id: parent }) => parent === run.run_id);
  return (
    <li>
      <div className="tree-line">
        <StateBadge state={run.state} />
        <Link
          to="/runs/$runId"
          params={{ runId: run.run_id }}
          aria-current={run.run_id === currentId ? "true" : undefined}
          className="truncate"
        >
          <SafeText>{run.executor?.display_name ?? run.title}</SafeText>
        </Link>
      </div>
      {children.length > 0 && (
        <ul>
          {children.map((child) => (
            <Branch key={child.run_id} run={child} runs={runs} currentId={currentId} />
          ))}
        </ul>
      )}
    </li>
  );
}
