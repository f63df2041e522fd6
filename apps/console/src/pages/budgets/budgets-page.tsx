import { useState, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { factoriesQuery } from "../../api/queries.ts";
import { useMay, useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { dollars } from "../../ui/money.ts";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { BudgetDialog } from "./budget-dialog.tsx";

type Budget = components["schemas"]["Budget"];

/** The budgets of the active team with their spend. */
export default function BudgetsPage(): ReactNode {
  const { team } = useSession();
  if (!team)
    return (
      <Page title="Budgets">
        <EmptyState title="Budgets belong to a team">Sign in with a key of a team to see its budgets.</EmptyState>
      </Page>
    );
  return <TeamBudgets teamUid={team.uid} />;
}

function TeamBudgets({ teamUid }: { teamUid: string }): ReactNode {
  const mayManage = useMay("team.manage");
  const [dialog, setDialog] = useState<{ action: "create" } | { action: "change" | "delete"; budget: Budget }>();
  const { data: factories } = useQuery(factoriesQuery);
  const { data, error, refetch } = useQuery({
    queryKey: ["budgets", teamUid],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/team/{uid}/budgets", { params: { path: { uid: teamUid } }, signal })),
  });
  const scopeName = (budget: Budget): ReactNode => {
    const name = factories?.factories.find(({ uid }) => uid === budget.scope_uid)?.name;
    if (budget.scope === "team") return "The team";
    return (
      <>
        {budget.scope} {name === undefined ? <Id value={budget.scope_uid} /> : <SafeText>{name}</SafeText>}
      </>
    );
  };
  const columns: readonly Column<Budget>[] = [
    { title: "Covers", cell: scopeName },
    { title: "Period", cell: ({ period }) => period },
    { title: "Used", cell: (budget) => <Usage budget={budget} /> },
    { title: "Spent", isNumber: true, cell: ({ spent_usd: spent }) => dollars(spent) },
    { title: "Reserved", isNumber: true, cell: ({ reserved_usd: reserved }) => dollars(reserved) },
    { title: "Limit", isNumber: true, cell: ({ limit_usd: limit }) => dollars(limit) },
    { title: "Next period", cell: ({ resets_at: at }) => (at === null ? "never" : <Time at={at} />) },
    { title: "Uid", cell: ({ uid }) => <Id value={uid} /> },
    {
      title: "Actions",
      cell: (budget) => (
        <span className="filters">
          <Button isSmall disabled={!mayManage} onClick={() => setDialog({ action: "change", budget })}>
            Change
          </Button>
          <Button isSmall look="danger" disabled={!mayManage} onClick={() => setDialog({ action: "delete", budget })}>
            Delete
          </Button>
        </span>
      ),
    },
  ];
  const close = (): void => setDialog(undefined);
  return (
    <Page
      title="Budgets"
      subtitle="A budget caps the cost of the model calls of many runs."
      actions={
        <>
          <Button look="primary" disabled={!mayManage} onClick={() => setDialog({ action: "create" })}>
            <Plus size={14} aria-hidden />
            Create budget
          </Button>
          <CopyCommands path={`/team/${teamUid}/budgets`} cli="budget list" />
        </>
      }
    >
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      {data?.budgets.length === 0 && (
        <EmptyState title="No budgets yet">
          Spend is not limited. Create a budget for the team, a factory, a schedule or an automation.
        </EmptyState>
      )}
      {data && data.budgets.length > 0 && (
        <DataTable caption="Budgets" columns={columns} rows={data.budgets} keyOf={({ uid }) => uid} />
      )}
      {dialog?.action === "create" && <BudgetDialog teamUid={teamUid} onClose={close} />}
      {dialog?.action === "change" && <BudgetDialog teamUid={teamUid} budget={dialog.budget} onClose={close} />}
      {dialog?.action === "delete" && <DeleteDialog teamUid={teamUid} budget={dialog.budget} onClose={close} />}
    </Page>
  );
}

const PERCENT = 100;

function Usage({ budget }: { budget: Budget }): ReactNode {
  const { limit_usd: limit, spent_usd: spent, reserved_usd: reserved } = budget;
  const used = spent + reserved;
  const share = limit === 0 ? PERCENT : Math.round((used / limit) * PERCENT);
  return (
    <span className="nowrap">
      <meter
        className="budget-meter"
        aria-label={`${dollars(used)} of ${dollars(limit)}`}
        min={0}
        max={Math.max(limit, used, 1e-6)}
        value={used}
      />{" "}
      {share}%
    </span>
  );
}

function DeleteDialog({
  teamUid,
  budget,
  onClose,
}: {
  teamUid: string;
  budget: Budget;
  onClose: () => void;
}): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const remove = useMutation({
    mutationFn: () =>
      api.DELETE("/api/v1/team/{uid}/budgets/{budget_uid}", {
        params: { path: { uid: teamUid, budget_uid: budget.uid } },
      }),
    onSuccess: () => {
      toasts.success("The budget is deleted.");
      void queries.invalidateQueries({ queryKey: ["budgets"] });
      onClose();
    },
  });
  return (
    <FormDialog
      title="Delete the budget?"
      action="Delete"
      isDanger
      isPending={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p>Runs that wait for it continue, and their model calls are no longer limited by it.</p>
    </FormDialog>
  );
}
