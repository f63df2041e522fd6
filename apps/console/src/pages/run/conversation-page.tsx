import type { ReactNode } from "react";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { listRuns } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { ConversationSteps } from "./conversation-steps.tsx";
import { FollowupBox } from "./followup-box.tsx";
import { RunArtifacts } from "./run-artifacts.tsx";

type RunItem = components["schemas"]["RunItem"];
const ROUTE = "/conversations/$conversationId";
const REFRESH_MS = 5_000;
const RUNS_MAX = 50;

/** A conversation: what was said and done in all its runs, their states, artifacts and pull requests. */
export default function ConversationPage(): ReactNode {
  const { conversationId } = getRouteApi(ROUTE).useParams();
  const {
    data: conversation,
    error,
    refetch,
  } = useQuery({
    queryKey: ["conversation", conversationId],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/conversations/{conversationId}", { params: { path: { conversationId } }, signal })),
    refetchInterval: REFRESH_MS,
  });
  const list = useRuns(conversationId);
  const runs = list.data?.runs ?? [];
  if (!conversation)
    return error ? (
      <Page title="Conversation">
        <ErrorView error={error} onRetry={() => void refetch()} />
      </Page>
    ) : (
      <p className="soft">Loading…</p>
    );
  return (
    <Page
      title={runs[0]?.title ?? "Conversation"}
      subtitle={
        <span className="run-line">
          Conversation <Id value={conversationId} />
        </span>
      }
      actions={<CopyCommands path={`/agent/conversations/${conversationId}`} />}
    >
      <div className="run-columns">
        <section className="conversation" aria-label="Messages">
          {conversation.steps.length === 0 ? (
            <EmptyState title="No messages yet">Messages appear when an agent has received the first one.</EmptyState>
          ) : (
            <ConversationSteps steps={conversation.steps} />
          )}
          <FollowupBox target={{ conversationId }} />
        </section>
        <aside className="run-side" aria-label="Details of the conversation">
          <Card
            title="Runs"
            actions={
              list.data?.page_info.has_next_page && (
                <Link to="/runs" search={{ conversation_id: conversationId }}>
                  All
                </Link>
              )
            }
          >
            {list.error ? <ErrorView error={list.error} /> : <Runs runs={runs} />}
          </Card>
          {runs.map((run) => (
            <RunArtifacts
              key={run.run_id}
              run={run}
              title={runs.length > 1 ? `Artifacts of ${run.title}` : undefined}
            />
          ))}
        </aside>
      </div>
    </Page>
  );
}

const Runs = ({ runs }: { runs: readonly RunItem[] }): ReactNode => (
  <ol className="plain-list">
    {runs.map(({ run_id: id, title, state, created_at: at }) => (
      <li key={id} className="tree-line">
        <StateBadge state={state} />
        <Link to="/runs/$runId" params={{ runId: id }} className="truncate">
          <SafeText>{title}</SafeText>
        </Link>
        <Time at={at} />
      </li>
    ))}
  </ol>
);

/** Returns the first runs of a conversation, oldest first. They are read again when an event of the team arrives. */
const useRuns = (conversationId: string) =>
  useQuery({
    queryKey: ["runs", "conversation", conversationId],
    queryFn: ({ signal }) =>
      listRuns({ conversation_id: conversationId, sort_by: "created_at", sort_order: "asc", limit: RUNS_MAX }, signal),
    refetchInterval: REFRESH_MS,
  });
