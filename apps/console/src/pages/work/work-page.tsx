import type { ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { Plus, Send } from "lucide-react";
import { factoriesQuery } from "../../api/queries.ts";
import { ForemanNotice, useForemanMissing } from "../../app/foreman-notice.tsx";
import { MissingModelNotice } from "../../app/model-notice.tsx";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { TextFilter } from "../../ui/filters.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { Select } from "../../ui/select-field.tsx";
import { Board } from "./board.tsx";
import { CreateTaskDialog } from "./create-task-dialog.tsx";
import { DispatchDialog } from "./dispatch-dialog.tsx";

type Factory = components["schemas"]["Factory"];

/** The tasks of a factory by stage. */
export default function WorkPage(): ReactNode {
  const search = getRouteApi("/work").useSearch();
  const navigate = useNavigate({ from: "/work" });
  const { dialog } = search;
  const setDialog = (next: typeof dialog): void =>
    void navigate({ search: (old) => ({ ...old, dialog: next }), replace: true });
  const mayManage = useMay("task.manage");
  const { data, error, refetch } = useQuery(factoriesQuery);
  const factories = data?.factories ?? [];
  const factory = factories.find(({ uid }) => uid === search.factory) ?? factories[0];
  if (error)
    return (
      <Page title="Work">
        <ErrorView error={error} onRetry={() => void refetch()} />
      </Page>
    );
  if (!data) return <p className="soft">Loading…</p>;
  if (!factory)
    return (
      <Page title="Work">
        <EmptyState title="No factory yet">
          <p>A factory receives work and dispatches it to its agents.</p>
          <Link to="/factories" search={{ dialog: "create" }} className="button primary">
            Create factory
          </Link>
        </EmptyState>
      </Page>
    );
  return (
    <Page
      title="Work"
      actions={
        <>
          <Button disabled={!mayManage} onClick={() => setDialog("create")}>
            <Plus size={14} aria-hidden />
            Create task
          </Button>
          <DispatchButton factory={factory} onClick={() => setDialog("dispatch")} />
          <CopyCommands
            path={`/factory/${factory.uid}/tasks?include_current_run=true`}
            cli={`task list --factory ${factory.uid}`}
          />
        </>
      }
    >
      <div className="filters">
        <Select
          label="Factory"
          value={factory.uid}
          choices={factories.map(({ uid, name }) => ({ value: uid, label: name }))}
          onChange={(uid) => void navigate({ search: { factory: uid } })}
        />
        <Link to="/factories/$factoryUid" params={{ factoryUid: factory.uid }}>
          Open factory
        </Link>
        <TextFilter
          label="Search tasks"
          value={search.q}
          onChange={(q) => void navigate({ search: (old) => ({ ...old, q }), replace: true })}
        />
      </div>
      <ForemanNotice factory={factory} />
      <MissingModelNotice />
      <Board factoryUid={factory.uid} q={search.q} mayMove={mayManage} />
      {dialog === "dispatch" && <DispatchDialog factory={factory} onClose={() => setDialog(undefined)} />}
      {dialog === "create" && <CreateTaskDialog factoryUid={factory.uid} onClose={() => setDialog(undefined)} />}
    </Page>
  );
}

function DispatchButton({ factory, onClick }: { factory: Factory; onClick: () => void }): ReactNode {
  const mayDispatch = useMay("run.create");
  const isForemanMissing = useForemanMissing(factory.uid);
  return (
    <Button
      look="primary"
      disabled={!mayDispatch || isForemanMissing}
      title={isForemanMissing ? "The factory has no foreman to receive work." : undefined}
      onClick={onClick}
    >
      <Send size={14} aria-hidden />
      Dispatch work
    </Button>
  );
}
