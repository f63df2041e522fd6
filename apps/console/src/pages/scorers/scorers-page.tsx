import { useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { FactoryPage } from "../../app/factory-page.tsx";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { count } from "../../ui/money.ts";
import { EmptyState } from "../../ui/page.tsx";
import { orDash, percent } from "../../ui/periods.ts";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { ScorerDialog } from "./scorer-dialog.tsx";
import { scorersQuery } from "./scorers-query.ts";

type ListedScorer = components["schemas"]["ListedScorer"];

const COLUMNS: readonly Column<ListedScorer>[] = [
  {
    title: "Scorer",
    cell: ({ uid, factory_uid: factoryUid, name }) => (
      <Link to="/scorers/$factoryUid/$scorerUid" params={{ factoryUid, scorerUid: uid }} className="primary-link">
        <SafeText>{name}</SafeText>
      </Link>
    ),
  },
  { title: "Judges by", cell: ({ rule, model_id: model }) => (rule ? "rule" : <SafeText>{model}</SafeText>) },
  {
    title: "Covers",
    cell: ({ scope_mode: scope, agents, scorer_kind: kind }) =>
      kind === "benchmark_task_correctness" ? (
        "benchmark trials"
      ) : scope === "all_agents" ? (
        "all agents"
      ) : (
        <SafeText>{agents.map(({ name, uid }) => name ?? uid).join(", ")}</SafeText>
      ),
  },
  { title: "Sampled", isNumber: true, cell: ({ sampling_rate: rate }) => `${rate}%` },
  {
    title: "Recent outcomes",
    cell: ({ pass_rate_summary: { recent_outcomes: outcomes } }) => (
      <span className="nowrap" role="img" aria-label={outcomes.join(", ") || "none"}>
        {outcomes.map((outcome) => (outcome === "pass" ? "✓" : "✗")).join(" ")}
      </span>
    ),
  },
  {
    title: "Pass rate",
    isNumber: true,
    cell: ({ pass_rate_summary: { pass_rate: rate } }) => orDash(rate, percent),
  },
  { title: "Results", isNumber: true, cell: ({ result_count: results }) => count(results) },
  { title: "Last scored", cell: ({ last_scored_at: at }) => <Time at={at} /> },
];

/** The scorers of a factory with their pass rates. */
export default function ScorersPage(): ReactNode {
  const search = getRouteApi("/scorers").useSearch();
  const navigate = useNavigate({ from: "/scorers" });
  const mayManage = useMay("factory.manage");
  const [isCreating, setCreating] = useState(false);
  return (
    <FactoryPage
      title="Scorers"
      uid={search.factory}
      onChoose={(factory) => void navigate({ search: { factory } })}
      actions={({ uid }) => (
        <>
          <Button look="primary" disabled={!mayManage} onClick={() => setCreating(true)}>
            <Plus size={14} aria-hidden />
            Create scorer
          </Button>
          <CopyCommands path={`/factory/${uid}/scorers`} cli={`scorer list --factory ${uid} --managed`} />
        </>
      )}
    >
      {({ uid }) => (
        <>
          {isCreating && <ScorerDialog factoryUid={uid} onClose={() => setCreating(false)} />}
          <FactoryScorers key={uid} factoryUid={uid} />
        </>
      )}
    </FactoryPage>
  );
}

function FactoryScorers({ factoryUid }: { factoryUid: string }): ReactNode {
  const { data, error, refetch } = useQuery(scorersQuery(factoryUid));
  if (error) return <ErrorView error={error} onRetry={() => void refetch()} />;
  if (!data) return <p className="soft">Loading…</p>;
  if (data.scorers.length === 0)
    return (
      <EmptyState title="No scorers yet">
        A scorer judges finished runs by a rubric or a rule. Add <code>scorers/&lt;slug&gt;/scorer.md</code> to the
        factory&apos;s definition, or create one with <code>npx millwright scorer create FILE</code>.
      </EmptyState>
    );
  return <DataTable caption="Scorers" columns={COLUMNS} rows={data.scorers} keyOf={({ uid }) => uid} />;
}
