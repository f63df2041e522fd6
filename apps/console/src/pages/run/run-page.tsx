import type { ReactNode } from "react";
import { getRouteApi } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { MissingModelNotice } from "../../app/model-notice.tsx";
import { useSession } from "../../app/session.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { isTerminal, StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { FollowupBox } from "./followup-box.tsx";
import { RunActions } from "./run-actions.tsx";
import { runQuery } from "./run-query.ts";
import { RunSide } from "./run-side.tsx";
import { StatusNotice } from "./status-notice.tsx";
import { TimelineView } from "./timeline-view.tsx";
import { useTimeline } from "./use-timeline.ts";

/** A run: live while it is active, and the same page afterwards. */
export default function RunPage(): ReactNode {
  const { runId } = getRouteApi("/runs/$runId").useParams();
  return <RunView key={runId} runId={runId} />;
}

function RunView({ runId }: { runId: string }): ReactNode {
  const {
    data: run,
    error,
    refetch,
  } = useQuery({
    ...runQuery(runId),
    // personal runs are not in the team's event stream
    refetchInterval: ({ state: { data } }) => (data && isTerminal(data.state) ? 15_000 : 4_000),
  });
  const { isLinkViewer } = useSession();
  // the stream of a run that waits or has ended is over; a later change of the run may have continued it
  const hasEnded = run !== undefined && (isTerminal(run.state) || run.state === "BLOCKED");
  const live = useTimeline(runId, hasEnded && run.updated_at);
  if (!run)
    return error ? (
      <Page title="Run">
        <ErrorView error={error} onRetry={() => void refetch()} />
      </Page>
    ) : (
      <p className="soft">Loading…</p>
    );
  return (
    <div className="run-page">
      <Page
        title={run.title}
        subtitle={
          <span className="run-line">
            <StateBadge state={run.state} />
            <SafeText>{run.executor?.display_name ?? run.agent_config?.name ?? "agent"}</SafeText>
            <span>
              created <Time at={run.created_at} />
            </span>
            <Id value={runId} />
          </span>
        }
        actions={
          <>
            <RunActions run={run} />
            <CopyCommands path={`/agent/runs/${runId}`} cli={`run get ${runId}`} />
          </>
        }
      >
        <StatusNotice run={run} isWithoutModel={live.timeline.isWithoutModel} />
      </Page>
      <div className="run-columns">
        <section className="run-main" aria-label="Timeline">
          {live.error ? <ErrorView error={live.error} /> : <TimelineView live={live} run={run} />}
          {isTerminal(run.state) && !isLinkViewer && <MissingModelNotice />}
          <FollowupBox target={{ runId }} />
        </section>
        <RunSide run={run} />
      </div>
    </div>
  );
}
