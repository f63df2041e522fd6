import { useState, type ReactNode } from "react";
import { getRouteApi, Link } from "@tanstack/react-router";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleStop } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { count, dollars } from "../../ui/money.ts";
import { Card, Facts, Page } from "../../ui/page.tsx";
import { duration, orDash } from "../../ui/periods.ts";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { BenchmarkState, isFinished } from "./benchmark-state.tsx";
import { Comparison } from "./comparison.tsx";
import { launchSettingsQuery, runnerNamesOf, type RunPath } from "./launch-settings.ts";
import { Matrix } from "./matrix.tsx";
import { suiteQuery } from "./suite-query.ts";
import { Trials } from "./trials.tsx";

/** How often an active run is read: that it has completed is no event of the team's stream. */
const POLL_MS = 3_000;

type BenchmarkRun = components["schemas"]["BenchmarkRun"];
const PATH = "/benchmarks/$factoryUid/$suiteUid/runs/$runUid";

/** A benchmark run: the matrix of configurations, its trials, and the comparison with another run. */
export default function BenchmarkRunPage(): ReactNode {
  const { factoryUid, suiteUid, runUid } = getRouteApi(PATH).useParams();
  const mayManage = useMay("factory.manage");
  const [isCancelling, setCancelling] = useState(false);
  const path = { factory_uid: factoryUid, suite_uid: suiteUid, run_uid: runUid };
  const { data, error, refetch } = useQuery({
    queryKey: ["runs", "benchmark", suiteUid, runUid],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs/{run_uid}", {
          params: { path, query: { include: ["creator"] } },
          signal,
        }),
      ),
    refetchInterval: ({ state }) => (state.data && isFinished(state.data.state) ? false : POLL_MS),
  });
  const isActive = data !== undefined && !isFinished(data.state);
  return (
    <Page
      title={data ? `${data.suite_name}, ${data.created_at.slice(0, 10)}` : "Benchmark run"}
      subtitle={data && <BenchmarkState state={data.state} />}
      actions={
        <>
          {isActive && (
            <Button look="danger" disabled={!mayManage} onClick={() => setCancelling(true)}>
              <CircleStop size={14} aria-hidden />
              Cancel
            </Button>
          )}
          <CopyCommands
            path={`/factory/${factoryUid}/benchmarks/${suiteUid}/runs/${runUid}/results`}
            cli={`benchmark results ${suiteUid} ${runUid} --factory ${factoryUid}`}
          />
        </>
      }
    >
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      {data && (
        <>
          <Results path={path} />
          <Trials path={path} />
          <Comparison path={path} />
          <RunFacts run={data} />
        </>
      )}
      {isCancelling && <CancelDialog path={path} onClose={() => setCancelling(false)} />}
    </Page>
  );
}

function Results({ path }: { path: RunPath }): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["runs", "benchmark", path.suite_uid, path.run_uid, "results"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs/{run_uid}/results", {
          params: { path, query: { include: ["configuration_metrics", "task_metrics"] } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data && !state.data.provisional ? false : POLL_MS),
  });
  const { data: suite } = useQuery(suiteQuery(path.factory_uid, path.suite_uid));
  const { data: run } = useQuery(launchSettingsQuery(path));
  if (error) return <ErrorView error={error} onRetry={() => void refetch()} />;
  if (!data) return <p className="soft">Loading…</p>;
  return (
    <Matrix
      results={data}
      titles={new Map(suite?.tasks.map(({ uid, title }) => [uid, title]))}
      runners={runnerNamesOf(run)}
    />
  );
}

function RunFacts({ run }: { run: BenchmarkRun }): ReactNode {
  return (
    <Card title="Details">
      <Facts
        entries={[
          ["Agent", run.agent_name && <SafeText key="agent">{run.agent_name}</SafeText>],
          ["Launched by", run.creator?.display_name && <SafeText key="by">{run.creator.display_name}</SafeText>],
          ["Repetitions", count(run.repetition_count)],
          ["Tasks", run.task_count],
          ["Trials", run.trial_count],
          ["Cost", orDash(run.cost_usd, dollars)],
          ["Elapsed", orDash(run.elapsed_s, duration)],
          ["Created", <Time key="created" at={run.created_at} />],
          ["Completed", <Time key="completed" at={run.completed_at} />],
          ["Suite version", run.suite_version],
          ["Manifest", <Id key="manifest" value={run.manifest_hash} isFull />],
          ["Uid", <Id key="uid" value={run.uid} />],
          [
            "Scores again",
            run.historical_replay_run_uid && (
              <Link
                key="replay"
                to={PATH}
                params={{
                  factoryUid: run.factory_uid,
                  suiteUid: run.suite_uid,
                  runUid: run.historical_replay_run_uid,
                }}
              >
                an earlier run
              </Link>
            ),
          ],
        ]}
      />
    </Card>
  );
}

function CancelDialog({ path, onClose }: { path: RunPath; onClose: () => void }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const cancel = useMutation({
    mutationFn: () =>
      api.POST("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs/{run_uid}/cancel", { params: { path } }),
    onSuccess: () => {
      toasts.success("The benchmark run is being cancelled.");
      void queries.invalidateQueries({ queryKey: ["runs", "benchmark", path.suite_uid] });
      onClose();
    },
  });
  return (
    <Dialog title="Cancel the benchmark run?" onClose={onClose}>
      <div className="body">
        <p>Its active trials and their runs are cancelled. Outcomes that exist stay.</p>
        {cancel.error && <ErrorView error={cancel.error} />}
      </div>
      <footer>
        <Button onClick={onClose}>Close</Button>
        <Button look="danger" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
          Cancel the run
        </Button>
      </footer>
    </Dialog>
  );
}
