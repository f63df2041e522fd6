import { useCallback, useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { Chart } from "../../ui/chart.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { RangeFilters } from "../../ui/range-filters.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { count, dollars } from "../../ui/money.ts";
import { Card, EmptyState, Facts, Page } from "../../ui/page.tsx";
import { FRESH_MS, orDash, percent, periodLabels } from "../../ui/periods.ts";
import { SafeText } from "../../ui/safe-text.tsx";
import { readableDuration, Time } from "../../ui/time.tsx";
import { ScoreRunsDialog } from "./score-runs-dialog.tsx";
import { scorersQuery } from "./scorers-query.ts";

type Scorer = components["schemas"]["ListedScorer"];
type Result = components["schemas"]["ScorerResult"];
const PATH = "/scorers/$factoryUid/$scorerUid";
const PAGE_SIZE = 25;

/** A scorer: its settings, its pass rate over time, and its results with reasons. */
export default function ScorerPage(): ReactNode {
  const route = getRouteApi(PATH);
  const { factoryUid, scorerUid } = route.useParams();
  const { data, error, refetch } = useQuery(scorersQuery(factoryUid));
  const mayScore = useMay("factory.manage");
  const [isScoring, setScoring] = useState(false);
  const scorer = data?.scorers.find(({ uid }) => uid === scorerUid);
  return (
    <Page
      title={scorer?.name ?? "Scorer"}
      subtitle={scorer && <SafeText>{scorer.description}</SafeText>}
      actions={
        <>
          <Button disabled={!scorer || !mayScore} onClick={() => setScoring(true)}>
            Judge runs
          </Button>
          <CopyCommands
            path={`/factory/${factoryUid}/scorers/${scorerUid}/results?include_reasons=true`}
            cli={`scorer show-results ${scorerUid} --factory ${factoryUid}`}
          />
        </>
      }
    >
      {scorer && isScoring && <ScoreRunsDialog scorer={scorer} onClose={() => setScoring(false)} />}
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      {data && !scorer && (
        <EmptyState title="There is no such scorer">
          It was deleted with its results, or belongs to another factory. See <Link to="/scorers">all scorers</Link>.
        </EmptyState>
      )}
      {scorer && (
        <>
          <Settings scorer={scorer} />
          <PassRates scorer={scorer} />
          <Results scorer={scorer} />
        </>
      )}
    </Page>
  );
}

function Settings({ scorer }: { scorer: Scorer }): ReactNode {
  const { allowed_classifications: labels, threshold } = scorer;
  return (
    <Card title="Settings">
      <Facts
        entries={[
          ["Judges by", scorer.rule ? "rule" : scorer.model_id],
          ["Labels", labels.map(({ value, score }) => `${value} (${score})`).join(", ")],
          ["Passes from", `${threshold}`],
          ["Sampled", `${scorer.sampling_rate}%`],
          ["Self-improvement", scorer.self_improvement_enabled ? "on" : "off"],
          ["Version", `${scorer.version}`],
          ["Changed", <Time key="changed" at={scorer.updated_at} />],
          ["Uid", <Id key="uid" value={scorer.uid} />],
        ]}
      />
      {scorer.scoring_prompt !== "" && (
        <details>
          <summary>Rubric</summary>
          <Markdown>{scorer.scoring_prompt}</Markdown>
        </details>
      )}
      {scorer.rule && (
        <details>
          <summary>Rule</summary>
          <pre>
            <SafeText>{JSON.stringify(scorer.rule, undefined, 2)}</SafeText>
          </pre>
        </details>
      )}
    </Card>
  );
}

function PassRates({ scorer: { uid, factory_uid: factoryUid } }: { scorer: Scorer }): ReactNode {
  const search = getRouteApi(PATH).useSearch();
  const navigate = useNavigate({ from: PATH });
  const query = {
    start_date: search.from,
    end_date: search.before,
    group_by_period: search.period ?? ("day" as const),
    include_cost: true,
  };
  const { data, error, refetch } = useQuery({
    queryKey: ["scorers", factoryUid, uid, "metrics", query],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/scorers/{scorer_uid}/metrics", {
          params: { path: { uid: factoryUid, scorer_uid: uid }, query },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    staleTime: FRESH_MS,
  });
  return (
    <>
      <div className="filters">
        <RangeFilters
          search={search}
          onChange={(changes) => void navigate({ search: (old) => ({ ...old, ...changes }), replace: true })}
        />
      </div>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {data && (
        <div className="charts">
          <Chart
            title="Pass rate"
            labelTitle="Period"
            labels={periodLabels(data.period_list)}
            kind="lines"
            max={1}
            format={percent}
            series={[{ name: "Pass rate", values: data.pass_rate.series.map(({ pass_rate: rate }) => rate) }]}
            summary={
              <span>
                <strong>{orDash(data.pass_rate.pass_rate, percent)}</strong> of{" "}
                {count(data.pass_rate.pass_count + data.pass_rate.fail_count)} scores
              </span>
            }
          />
          <Chart
            title="Outcomes"
            labelTitle="Period"
            labels={periodLabels(data.period_list)}
            kind="bars"
            format={count}
            series={[
              { name: "Passed", values: data.pass_rate.series.map((each) => each.pass_count) },
              { name: "Failed", values: data.pass_rate.series.map((each) => each.fail_count) },
            ]}
            tableOnly={data.cost ? [{ name: "Cost", values: data.cost.series }] : []}
            formatTableOnly={dollars}
            summary={data.cost && <span>{dollars(data.cost.dollars)} for judging</span>}
          />
        </div>
      )}
    </>
  );
}

const OUTCOMES = { scored: "", failed: "attempt failed", in_flight: "judging" } as const;

function Outcome({ outcome, status }: Result): ReactNode {
  if (outcome) return <span className={`badge ${outcome === "pass" ? "good" : "bad"}`}>{outcome}</span>;
  return <span className={`badge ${status === "in_flight" ? "busy" : ""}`}>{OUTCOMES[status] || "no outcome"}</span>;
}

function Reasons({ reasons = [], failure_message: failure }: Result): ReactNode {
  const texts = [...reasons.map(({ reason }) => reason), failure].filter((text) => text !== undefined);
  return texts.length === 0 ? "–" : <Markdown>{texts.join("\n\n")}</Markdown>;
}

const COLUMNS: readonly Column<Result>[] = [
  {
    title: "Run",
    cell: ({ run_id: id, conversation_title: title }) => (
      <Link to="/runs/$runId" params={{ runId: id }} className="primary-link truncate">
        <SafeText>{title ?? id}</SafeText>
      </Link>
    ),
  },
  { title: "Outcome", cell: (result) => <Outcome {...result} /> },
  { title: "Label", cell: ({ classification }) => <SafeText>{classification ?? "–"}</SafeText> },
  { title: "Score", isNumber: true, cell: ({ score }) => score ?? "–" },
  { title: "Reason", cell: (result) => <Reasons {...result} /> },
  { title: "Scored", cell: ({ scored_at: at, attempted_at: attempted }) => <Time at={at ?? attempted} /> },
  {
    title: "Judge run",
    cell: ({ scoring_run_id: id, scoring_run_time: time }) =>
      id === undefined ? (
        "–"
      ) : (
        <Link to="/runs/$runId" params={{ runId: id }}>
          {time === undefined ? "open" : readableDuration(time)}
        </Link>
      ),
  },
];

function Results({ scorer: { uid, factory_uid: factoryUid } }: { scorer: Scorer }): ReactNode {
  const { cursor } = getRouteApi(PATH).useSearch();
  const navigate = useNavigate({ from: PATH });
  const move = useCallback(
    (next: string | undefined) => void navigate({ search: (old) => ({ ...old, cursor: next }) }),
    [navigate],
  );
  return (
    <section>
      <h2>Results</h2>
      <ListView
        queryKey={["scorers", factoryUid, uid, "results"]}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/factory/{uid}/scorers/{scorer_uid}/results", {
              params: {
                path: { uid: factoryUid, scorer_uid: uid },
                query: { limit: PAGE_SIZE, include_reasons: true, cursor: at },
              },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ results }) => results.length === 0}
        cursor={cursor}
        onCursor={move}
        empty={
          <EmptyState title="No results yet">
            Runs that this scorer covers are judged after they end. Judge one now:{" "}
            <code>npx millwright scorer dispatch {uid} RUN</code>
          </EmptyState>
        }
      >
        {({ results }) => (
          <DataTable caption="Results" columns={COLUMNS} rows={results} keyOf={({ attempt_id: id }) => id} />
        )}
      </ListView>
    </section>
  );
}
