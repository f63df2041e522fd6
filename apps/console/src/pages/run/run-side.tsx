import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Id } from "../../ui/copy.tsx";
import { count, dollars } from "../../ui/money.ts";
import { Card, Facts } from "../../ui/page.tsx";
import { harnessText, sentenceCase, sourceText } from "../../ui/run-source.ts";
import { SafeText } from "../../ui/safe-text.tsx";
import { readableDuration, Time } from "../../ui/time.tsx";
import { RunArtifacts } from "./run-artifacts.tsx";
import { RunTree } from "./run-tree.tsx";

type RunItem = components["schemas"]["RunItem"];

/** Names of the metadata that the platform itself sets. */
const METADATA: Readonly<Record<string, string>> = { ticket_id: "Ticket", ticket_source: "Ticket source" };

/** Source of the ticket that the platform makes for work without one. */
const NO_TICKET = "adhoc";

/** Returns the metadata to show. The ticket of work without one is left out. */
const shownMetadata = ({ metadata = {} }: RunItem): [string, string][] =>
  Object.entries(metadata).filter(([name]) => metadata["ticket_source"] !== NO_TICKET || METADATA[name] === undefined);

/** What a run is and cost, its artifacts and its tree. */
export function RunSide({ run }: { run: RunItem }): ReactNode {
  return (
    <aside className="run-side" aria-label="Details of the run">
      <RunArtifacts run={run} />
      <RunTree run={run} />
      <Card title="Usage and cost">
        <Usage run={run} />
      </Card>
      <Card title="Details">
        <RunFacts run={run} />
      </Card>
    </aside>
  );
}

function RunFacts({ run }: { run: RunItem }): ReactNode {
  const { agent_config: config = {} } = run;
  const { isLinkViewer } = useSession();
  const text = (value: string | undefined): ReactNode => (value ? <SafeText>{value}</SafeText> : undefined);
  return (
    <Facts
      entries={[
        ["Agent", text(run.executor?.display_name ?? config.name)],
        ["Created by", text(run.creator?.display_name)],
        ["Source", run.source && sourceText(run.source)],
        ["Model", text(config.model_id)],
        ["Harness", config.harness?.type && harnessText(config.harness.type)],
        ["Created", <Time key="created" at={run.created_at} />],
        ["Started", <Time key="started" at={run.started_at} />],
        ["Finished", <Time key="finished" at={run.finished_at} />],
        ["Duration", run.run_time && readableDuration(run.run_time)],
        [
          "Schedule",
          run.schedule && (
            <Link key="schedule" to="/schedules/$scheduleId" params={{ scheduleId: run.schedule.schedule_id }}>
              <SafeText>{run.schedule.schedule_name}</SafeText>
            </Link>
          ),
        ],
        [
          "Conversation",
          run.conversation_id && (
            <span key="conversation" className="line">
              {!isLinkViewer && (
                <Link to="/conversations/$conversationId" params={{ conversationId: run.conversation_id }}>
                  Open
                </Link>
              )}
              <Id value={run.conversation_id} />
            </span>
          ),
        ],
        [
          "Retry of",
          run.retry_of_run_id && (
            <Link key="retry" to="/runs/$runId" params={{ runId: run.retry_of_run_id }}>
              the original run
            </Link>
          ),
        ],
        ["Cost limit", config.cost_limit_usd === undefined ? undefined : dollars(config.cost_limit_usd)],
        ...shownMetadata(run).map(
          ([name, value]) =>
            [METADATA[name] ?? name, text(name === "ticket_source" ? sentenceCase(value) : value)] as const,
        ),
      ]}
    />
  );
}

function Usage({ run }: { run: RunItem }): ReactNode {
  const usage = run.request_usage;
  const { data: harness } = useQuery({
    queryKey: ["run", run.run_id, "harness-usage"],
    enabled: run.agent_config?.harness?.type !== "oz",
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/runs/{runId}/harness-usage", { params: { path: { runId: run.run_id } }, signal })),
  });
  if (!usage) return <p className="soft">Nothing was used yet.</p>;
  const { inference_cost_usd: inference = 0, compute_cost_usd: compute = 0, platform_cost_usd: platform = 0 } = usage;
  return (
    <Facts
      entries={[
        ["Total", dollars(inference + compute + platform)],
        ["Inference", dollars(inference)],
        ["Compute", dollars(compute)],
        ["Platform", dollars(platform)],
        ["Tokens", count(usage.total_tokens ?? 0)],
        ...(usage.model_token_usage ?? []).map(
          (model) => [model.model_id, `${count(model.total_tokens)} tokens`] as const,
        ),
        ["Reported by the harness", harness?.available ? "yes" : undefined],
      ]}
    />
  );
}
