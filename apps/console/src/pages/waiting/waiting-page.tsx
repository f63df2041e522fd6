import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { factoriesQuery } from "../../api/queries.ts";
import { useWaiting, WAITING_MAX, type WaitingTask } from "../../api/waiting.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";

type RunItem = components["schemas"]["RunItem"];
type Schedule = components["schemas"]["ScheduledAgent"];

const RUNS: readonly Column<RunItem>[] = [
  {
    title: "Run",
    cell: ({ run_id: id, title }) => (
      <Link to="/runs/$runId" params={{ runId: id }} className="primary-link truncate">
        <SafeText>{title}</SafeText>
      </Link>
    ),
  },
  {
    title: "Why",
    cell: ({ status_message: status }) => (
      <span className="truncate">
        <SafeText>{status?.message ?? "–"}</SafeText>
      </span>
    ),
  },
  { title: "Since", cell: ({ updated_at: at }) => <Time at={at} /> },
];

const TASKS: readonly Column<WaitingTask>[] = [
  {
    title: "Task",
    cell: ({ title, run_id: runId, current_run: run }) => (
      <Link to="/runs/$runId" params={{ runId: run?.run_id ?? runId }} className="primary-link truncate">
        <SafeText>{title}</SafeText>
      </Link>
    ),
  },
  { title: "Run", cell: ({ current_run: run }) => (run ? <StateBadge state={run.state} /> : "–") },
  {
    title: "Board",
    cell: ({ factory_uid: factory }) => <FactoryLink uid={factory} />,
  },
  { title: "Since", cell: ({ updated_at: at }) => <Time at={at} /> },
];

const SCHEDULES: readonly Column<Schedule>[] = [
  {
    title: "Schedule",
    cell: ({ id, name }) => (
      <Link to="/schedules/$scheduleId" params={{ scheduleId: id }} className="primary-link truncate">
        <SafeText>{name}</SafeText>
      </Link>
    ),
  },
  { title: "Error", cell: ({ last_spawn_error: error }) => <SafeText>{error ?? ""}</SafeText> },
  { title: "Next", cell: ({ history }) => <Time at={history?.next_run} /> },
  {
    title: "Runs",
    cell: ({ id }) => (
      <Link to="/runs" search={{ schedule_id: id }}>
        Its runs
      </Link>
    ),
  },
];

/** A link to the board of a factory, with its name. */
function FactoryLink({ uid }: { uid: string }): ReactNode {
  const { data } = useQuery(factoriesQuery);
  return (
    <Link to="/work" search={{ factory: uid }}>
      <SafeText>{data?.factories.find((factory) => factory.uid === uid)?.name ?? uid}</SafeText>
    </Link>
  );
}

/** What waits for people: blocked runs, tasks in review, failed schedules. */
export default function WaitingPage(): ReactNode {
  const { blocked, reviews, schedules, count } = useWaiting();
  const isLoaded = blocked.data !== undefined && reviews.data !== undefined && schedules.data !== undefined;
  return (
    <Page
      title="Waiting"
      subtitle="What waits for a person: blocked runs, tasks in review, and schedules whose last run did not start."
      actions={<CopyCommands path="/agent/runs?state=BLOCKED" cli="run list --state BLOCKED" />}
    >
      {[blocked, reviews, schedules].map(
        ({ error, refetch }, index) =>
          // the three queries never change places
          error && <ErrorView key={index} error={error} onRetry={() => void refetch()} />,
      )}
      {!isLoaded && <p className="soft">Loading…</p>}
      {isLoaded && count === 0 && (
        <EmptyState title="Nothing waits">
          Runs that need an answer, tasks in review and schedules that cannot start appear here. See what is active
          under <Link to="/runs">Runs</Link>.
        </EmptyState>
      )}
      {blocked.data && blocked.data.length > 0 && (
        <Card title={blocked.data.length < WAITING_MAX ? "Blocked runs" : `The last ${WAITING_MAX} blocked runs`}>
          <DataTable caption="Blocked runs" columns={RUNS} rows={blocked.data} keyOf={({ run_id: id }) => id} />
        </Card>
      )}
      {reviews.data && reviews.data.length > 0 && (
        <Card title={reviews.data.length < WAITING_MAX ? "Tasks in review" : `The last ${WAITING_MAX} tasks in review`}>
          <DataTable caption="Tasks in review" columns={TASKS} rows={reviews.data} keyOf={({ uid }) => uid} />
        </Card>
      )}
      {schedules.data && schedules.data.length > 0 && (
        <Card title="Failed schedules">
          <DataTable caption="Failed schedules" columns={SCHEDULES} rows={schedules.data} keyOf={({ id }) => id} />
        </Card>
      )}
    </Page>
  );
}
