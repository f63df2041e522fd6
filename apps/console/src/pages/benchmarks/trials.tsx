import type { ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ChoicesFilter, ClearFilters } from "../../ui/filters.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { Card, EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { BenchmarkState } from "./benchmark-state.tsx";
import { launchSettingsQuery, type RunPath } from "./launch-settings.ts";

type Trial = components["schemas"]["BenchmarkTrial"];
const PATH = "/benchmarks/$factoryUid/$suiteUid/runs/$runUid";
const PAGE_SIZE = 50;
const STATES = ["pending", "running", "succeeded", "failed", "cancelled"] as const;

/** The trials of a benchmark run. Each links to its run. */
export function Trials({ path }: { path: RunPath }): ReactNode {
  const { configuration = [], state = [], cursor } = getRouteApi(PATH).useSearch();
  const navigate = useNavigate({ from: PATH });
  const { data: run } = useQuery(launchSettingsQuery(path));
  const configurations = (run?.configurations ?? []).map(({ uid, display_name: label }) => ({ value: uid, label }));
  const filter = (changes: { configuration?: string[]; state?: string[] }): void =>
    void navigate({ search: (old) => ({ ...old, cursor: undefined, ...changes }), replace: true });
  const query = { configuration_uid: configuration, state: state as (typeof STATES)[number][] };
  const columns: readonly Column<Trial>[] = [
    { title: "Task", cell: ({ task_title: title }) => <SafeText>{title}</SafeText> },
    {
      title: "Configuration",
      cell: ({ configuration_uid: uid }) => (
        <SafeText>{configurations.find(({ value }) => value === uid)?.label ?? uid}</SafeText>
      ),
    },
    { title: "Repetition", isNumber: true, cell: ({ rep_index: index }) => index + 1 },
    { title: "State", cell: (trial) => <BenchmarkState state={trial.state} /> },
    { title: "Scores", cell: ({ scores = [] }) => <Scores scores={scores} /> },
    { title: "Attempts", isNumber: true, cell: ({ attempt_count: attempts }) => attempts },
    { title: "Ended", cell: ({ completed_at: at }) => <Time at={at} /> },
    {
      title: "Run",
      cell: ({ run_id: id }) =>
        id === null ? (
          "–"
        ) : (
          <Link to="/runs/$runId" params={{ runId: id }} className="mono">
            {id.slice(-8)}
          </Link>
        ),
    },
  ];
  return (
    <Card title="Trials">
      <div className="filters">
        <ChoicesFilter
          label="Configuration"
          values={configuration}
          choices={configurations}
          onChange={(values) => filter({ configuration: values })}
        />
        <ChoicesFilter
          label="State"
          values={state}
          choices={STATES.map((value) => ({ value, label: value }))}
          onChange={(values) => filter({ state: values })}
        />
        <ClearFilters
          isActive={configuration.length + state.length > 0}
          onClear={() => filter({ configuration: [], state: [] })}
        />
      </div>
      <ListView
        queryKey={["runs", "benchmark", path.suite_uid, path.run_uid, "trials", query]}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs/{run_uid}/trials", {
              params: { path, query: { ...query, include: ["scores"], limit: PAGE_SIZE, cursor: at } },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ data }) => data.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: (old) => ({ ...old, cursor: next }) })}
        empty={
          <EmptyState title="No trials">
            No trial matches the filters, or the trials are still being created.
          </EmptyState>
        }
      >
        {({ data }) => <DataTable caption="Trials" columns={columns} rows={data} keyOf={({ uid }) => uid} />}
      </ListView>
    </Card>
  );
}

function Scores({ scores }: { scores: NonNullable<Trial["scores"]> }): ReactNode {
  if (scores.length === 0) return "–";
  return scores.map((score) => {
    const label = [score["outcome"], score["classification"], score.status].find((text) => typeof text === "string");
    const look = score["outcome"] === "pass" ? "good" : score["outcome"] === "fail" ? "bad" : "";
    return (
      <span key={score.scorer_uid} className={`badge ${look}`}>
        <SafeText>{label as string}</SafeText>
      </span>
    );
  });
}
