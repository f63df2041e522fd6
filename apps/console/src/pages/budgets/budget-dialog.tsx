import { useState, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { factoriesQuery } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { choicesOf, SelectField } from "../../ui/select-field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useToasts } from "../../ui/toasts.tsx";

type Budget = components["schemas"]["Budget"];
const SCOPES = choicesOf({ team: "team", factory: "factory", schedule: "schedule", automation: "automation" });
const PERIODS = choicesOf({ month: "month", week: "week", day: "day", total: "total" });
const DEFAULT_LIMIT_USD = 100;

type Props = {
  readonly teamUid: string;
  /** The budget to change. Absent: a new one. */
  readonly budget?: Budget;
  readonly onClose: () => void;
};

/** Creates a budget, or changes the limit of one. */
export function BudgetDialog({ teamUid, budget, onClose }: Props): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const [scope, setScope] = useState<Budget["scope"]>("team");
  const [scopeUid, setScopeUid] = useState("");
  const [period, setPeriod] = useState<Budget["period"]>("month");
  const [limit, setLimit] = useState(`${budget?.limit_usd ?? DEFAULT_LIMIT_USD}`);
  const body = {
    scope,
    period,
    limit_usd: Number(limit),
    scope_uid: scope === "team" ? undefined : scopeUid.trim(),
  };
  const header = useIdempotencyKey(body);
  const { data: factories } = useQuery(factoriesQuery);
  const save = useMutation({
    mutationFn: () =>
      budget
        ? dataOf(
            api.PATCH("/api/v1/team/{uid}/budgets/{budget_uid}", {
              params: { path: { uid: teamUid, budget_uid: budget.uid } },
              body: { limit_usd: Number(limit) },
            }),
          )
        : dataOf(
            api.POST("/api/v1/team/{uid}/budgets", {
              params: { path: { uid: teamUid }, header },
              body,
            }),
          ),
    onSuccess: () => {
      toasts.success("The budget applies from the next model call on.");
      void queries.invalidateQueries({ queryKey: ["budgets"] });
      onClose();
    },
  });
  return (
    <FormDialog
      title={budget ? "Change the budget" : "Create a budget"}
      action={budget ? "Save" : "Create"}
      isPending={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <p className="soft">Model calls beyond the limit wait until the budget is raised or its next period begins.</p>
      {!budget && (
        <>
          <SelectField label="Covers the runs of a" value={scope} choices={SCOPES} onChange={setScope} />
          {scope === "factory" && (
            <SelectField
              label="Factory"
              required
              value={scopeUid}
              choices={[
                { value: "", label: "Choose a factory…" },
                ...(factories?.factories ?? []).map(({ uid, name }) => ({ value: uid, label: name })),
              ]}
              onChange={setScopeUid}
            />
          )}
          {(scope === "schedule" || scope === "automation") && (
            <TextField label={`Uid of the ${scope}`} required value={scopeUid} onChange={setScopeUid} />
          )}
          <SelectField label="Period" value={period} choices={PERIODS} onChange={setPeriod} />
        </>
      )}
      <TextField
        label="Limit in US dollars"
        type="number"
        required
        min="0"
        step="any"
        value={limit}
        onChange={setLimit}
      />
    </FormDialog>
  );
}
