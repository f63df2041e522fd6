import type { ReactNode } from "react";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useQueries, useQuery } from "@tanstack/react-query";
import * as v from "valibot";
import { api, dataOf } from "../../api/client.ts";
import { ApiError, errorOf } from "../../api/problem.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { isTerminal, StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { ConversationSteps } from "./conversation-steps.tsx";
import { FollowupBox } from "./followup-box.tsx";
import { RunArtifacts } from "./run-artifacts.tsx";
import { runQuery } from "./run-query.ts";

type RunItem = components["schemas"]["RunItem"];
const ROUTE = "/conversations/$conversationId";
const REFRESH_MS = 5_000;

const BlockSnapshot = v.object({ blocks: v.array(v.object({ run_id: v.string() })) });

/** A conversation: what was said and done in all its runs, their states, artifacts and pull requests. */
export default function ConversationPage(): ReactNode {
  const { conversationId } = getRouteApi(ROUTE).useParams();
  const { run: openedFrom } = getRouteApi(ROUTE).useSearch();
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
  const runs = useRuns(conversationId, openedFrom);
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
            <ConversationSteps steps={conversation.steps} conversationId={conversationId} />
          )}
          <FollowupBox target={{ conversationId }} />
        </section>
        <aside className="run-side" aria-label="Details of the conversation">
          <Card title="Runs">
            {runs.length === 0 ? <p className="soft">No run has executed a command yet.</p> : <Runs runs={runs} />}
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

/**
 * Returns runs of a conversation, oldest first: those whose commands its block snapshot contains, and the one that
 * linked here. The API has no list of runs by conversation.
 */
function useRuns(conversationId: string, openedFrom: string | undefined): readonly RunItem[] {
  const { data: ids = [] } = useQuery({
    queryKey: ["conversation", conversationId, "runs"],
    queryFn: ({ signal }) => runIdsOf(conversationId, signal),
    refetchInterval: REFRESH_MS,
  });
  return useQueries({
    queries: [...new Set([...ids, ...(openedFrom === undefined ? [] : [openedFrom])])].map((id) => ({
      ...runQuery(id),
      refetchInterval: ({ state: { data } }: { state: { data: RunItem | undefined } }) =>
        data && isTerminal(data.state) ? false : REFRESH_MS,
    })),
    combine: (results) =>
      results
        .flatMap(({ data }) => (data?.conversation_id === conversationId ? [data] : []))
        .sort((left, right) => left.created_at.localeCompare(right.created_at)),
  });
}

async function runIdsOf(conversationId: string, signal: AbortSignal): Promise<string[]> {
  try {
    const { download_url: url } = await dataOf(
      api.GET("/api/v1/agent/conversations/{conversationId}/block-snapshot", {
        params: { path: { conversationId }, query: { redirect: false } },
        signal,
      }),
    );
    const response = await fetch(url, { signal });
    if (!response.ok) throw await errorOf(`GET ${new URL(url).pathname}`, response);
    const { blocks } = v.parse(BlockSnapshot, await response.json());
    return [...new Set(blocks.map(({ run_id: id }) => id))];
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return []; // no execution has started
    throw error;
  }
}
