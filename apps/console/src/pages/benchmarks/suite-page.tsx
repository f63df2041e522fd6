import { useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { count, dollars } from "../../ui/money.ts";
import { Card, EmptyState, Facts, Page } from "../../ui/page.tsx";
import { orDash, percent } from "../../ui/periods.ts";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { BenchmarkState } from "./benchmark-state.tsx";
import { DifferingSettings, settingColumns } from "./configuration-settings.tsx";
import { launchSettingsQuery, runnerNamesOf } from "./launch-settings.ts";
import { LaunchDialog } from "./launch-dialog.tsx";
import { suiteQuery } from "./suite-query.ts";

type Suite = components["schemas"]["BenchmarkSuiteWithTasks"];
type BenchmarkRun = components["schemas"]["BenchmarkRun"];
const PATH = "/benchmarks/$factoryUid/$suiteUid";
const PAGE_SIZE = 25;

/** A benchmark suite: its configurations, tasks and runs. */
export default function SuitePage(): ReactNode {
  const { factoryUid, suiteUid } = getRouteApi(PATH).useParams();
  const mayLaunch = useMay("factory.manage");
  const [isLaunching, setLaunching] = useState(false);
  const { data, error, refetch } = useQuery(suiteQuery(factoryUid, suiteUid));
  return (
    <Page
      title={data?.name ?? "Suite"}
      subtitle={data?.description !== undefined && <SafeText>{data.description}</SafeText>}
      actions={
        <>
          <Button look="primary" disabled={!mayLaunch || !data} onClick={() => setLaunching(true)}>
            <Play size={14} aria-hidden />
            Launch
          </Button>
          <CopyCommands
            path={`/factory/${factoryUid}/benchmarks/${suiteUid}/runs`}
            cli={`benchmark runs ${suiteUid} --factory ${factoryUid}`}
          />
        </>
      }
    >
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      <SuiteRuns />
      {data && <SuiteContent suite={data} />}
      {isLaunching && data && <LaunchDialog suite={data} onClose={() => setLaunching(false)} />}
    </Page>
  );
}

const RUN_COLUMNS: readonly Column<BenchmarkRun>[] = [
  {
    title: "Benchmark run",
    cell: ({ uid, factory_uid: factoryUid, suite_uid: suiteUid, created_at: at }) => (
      <Link
        to="/benchmarks/$factoryUid/$suiteUid/runs/$runUid"
        params={{ factoryUid, suiteUid, runUid: uid }}
        className="primary-link"
      >
        {at.slice(0, 16).replace("T", " ")} UTC
      </Link>
    ),
  },
  { title: "State", cell: ({ state }) => <BenchmarkState state={state} /> },
  {
    title: "Pass rates",
    cell: ({ configuration_stats: stats }) => (
      <SafeText>
        {(stats ?? []).map((each) => `${each.display_name} ${orDash(each.pass_rate, percent)}`).join(" · ") || "–"}
      </SafeText>
    ),
  },
  {
    title: "Trials",
    isNumber: true,
    cell: ({ trial_progress: progress }) =>
      progress ? `${count(progress.completed)} of ${count(progress.total)}` : "–",
  },
  { title: "Cost", isNumber: true, cell: ({ cost_usd: cost }) => orDash(cost, dollars) },
  { title: "Suite version", isNumber: true, cell: ({ suite_version: version }) => version },
  { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
];

function SuiteRuns(): ReactNode {
  const route = getRouteApi(PATH);
  const { factoryUid, suiteUid } = route.useParams();
  const { cursor } = route.useSearch();
  const navigate = useNavigate({ from: PATH });
  return (
    <ListView
      queryKey={["runs", "benchmark", suiteUid]}
      load={(at, signal) =>
        dataOf(
          api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs", {
            params: {
              path: { factory_uid: factoryUid, suite_uid: suiteUid },
              query: { limit: PAGE_SIZE, cursor: at },
            },
            signal,
          }),
        )
      }
      pageInfoOf={({ page_info: info }) => info}
      isEmpty={({ data }) => data.length === 0}
      cursor={cursor}
      onCursor={(next) => void navigate({ search: { cursor: next } })}
      empty={
        <EmptyState title="No runs of this suite yet">
          “Launch” executes every task under every configuration. A few repetitions are needed to distinguish
          configurations.
        </EmptyState>
      }
    >
      {({ data }) => <DataTable caption="Benchmark runs" columns={RUN_COLUMNS} rows={data} keyOf={(run) => run.uid} />}
    </ListView>
  );
}

/** Returns the names of runners by uid, from the newest benchmark run of the suite. */
function useRunnerNames({ factory_uid, uid: suite_uid }: Suite): ReadonlyMap<string, string> {
  const { data: newest } = useQuery({
    queryKey: ["runs", "benchmark", suite_uid, "newest"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs", {
          params: { path: { factory_uid, suite_uid }, query: { limit: 1 } },
          signal,
        }),
      ),
  });
  const run_uid = newest?.data[0]?.uid;
  const { data: run } = useQuery({
    ...launchSettingsQuery({ factory_uid, suite_uid, run_uid: run_uid ?? "" }),
    enabled: run_uid !== undefined,
  });
  return runnerNamesOf(run);
}

function SuiteContent({ suite }: { suite: Suite }): ReactNode {
  const { configurations = [] } = suite;
  const runners = useRunnerNames(suite);
  return (
    <>
      <Card title="Configurations">
        <DifferingSettings configurations={configurations} />
        <DataTable
          caption="Configurations"
          columns={[
            { title: "Name", cell: (each) => <SafeText>{each.display_name}</SafeText> },
            { title: "Role", cell: ({ role }) => role },
            ...settingColumns(configurations, runners),
            { title: "Uid", cell: ({ uid }) => <Id value={uid} /> },
          ]}
          rows={configurations}
          keyOf={({ uid }) => uid}
        />
      </Card>
      <Card title={`Tasks (${suite.tasks.length})`}>
        {suite.tasks.length === 0 && (
          <p className="soft">
            Add one: <code>npx millwright benchmark add-task {suite.uid} task.json</code>
          </p>
        )}
        {suite.tasks.map((task) => (
          <details key={task.uid}>
            <summary>
              <SafeText>{task.title}</SafeText>
            </summary>
            <Facts
              entries={[
                ["Tags", task.tags.length > 0 ? <SafeText key="tags">{task.tags.join(", ")}</SafeText> : undefined],
                ["Correctness", task.rule ? "a rule" : "a model that reads the success criteria"],
                ["Success criteria", <Markdown key="criteria">{task.success_criteria}</Markdown>],
                ["Prompt", <Markdown key="prompt">{task.prompt}</Markdown>],
                ["Uid", <Id key="uid" value={task.uid} />],
              ]}
            />
          </details>
        ))}
      </Card>
    </>
  );
}
