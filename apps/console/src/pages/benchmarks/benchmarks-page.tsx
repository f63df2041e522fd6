import type { ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client.ts";
import { FactoryPage } from "../../app/factory-page.tsx";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { count } from "../../ui/money.ts";
import { EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";

type Suite = components["schemas"]["BenchmarkSuite"];
const PAGE_SIZE = 50;

const COLUMNS: readonly Column<Suite>[] = [
  {
    title: "Suite",
    cell: ({ uid, factory_uid: factoryUid, name }) => (
      <Link to="/benchmarks/$factoryUid/$suiteUid" params={{ factoryUid, suiteUid: uid }} className="primary-link">
        <SafeText>{name}</SafeText>
      </Link>
    ),
  },
  { title: "Agent", cell: ({ factory_agent_type: agent }) => <SafeText>{agent}</SafeText> },
  { title: "Configurations", isNumber: true, cell: ({ configurations = [] }) => count(configurations.length) },
  { title: "Version", isNumber: true, cell: ({ version }) => version },
  { title: "Changed", cell: ({ updated_at: at }) => <Time at={at} /> },
];

/** The benchmark suites of a factory. */
export default function BenchmarksPage(): ReactNode {
  const search = getRouteApi("/benchmarks").useSearch();
  const navigate = useNavigate({ from: "/benchmarks" });
  return (
    <FactoryPage
      title="Benchmarks"
      uid={search.factory}
      onChoose={(factory) => void navigate({ search: { factory } })}
      actions={({ uid }) => (
        <CopyCommands path={`/factory/${uid}/benchmarks`} cli={`benchmark list --factory ${uid}`} />
      )}
    >
      {({ uid }) => (
        <ListView
          queryKey={["benchmarks", uid]}
          load={(cursor, signal) =>
            dataOf(
              api.GET("/api/v1/factory/{factory_uid}/benchmarks", {
                params: { path: { factory_uid: uid }, query: { limit: PAGE_SIZE, cursor } },
                signal,
              }),
            )
          }
          pageInfoOf={({ page_info: info }) => info}
          isEmpty={({ suites }) => suites.length === 0}
          cursor={search.cursor}
          onCursor={(cursor) => void navigate({ search: (old) => ({ ...old, cursor }) })}
          empty={
            <EmptyState title="No benchmark suites yet">
              A suite is a list of tasks for one agent. Add <code>benchmarks/&lt;slug&gt;/suite.yaml</code> to the
              factory&apos;s definition, or create one with <code>npx millwright benchmark create suite.json</code>. The
              guide is <code>docs/guides/benchmarks.md</code>; <code>npm run demo:benchmark -- --keep</code> starts a
              platform with an example.
            </EmptyState>
          }
        >
          {({ suites }) => <DataTable caption="Suites" columns={COLUMNS} rows={suites} keyOf={(suite) => suite.uid} />}
        </ListView>
      )}
    </FactoryPage>
  );
}
