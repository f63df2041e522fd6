import { useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { AutomationDialog } from "./automation-dialog.tsx";
import { inFactory, type FactoryTab } from "./in-factory.tsx";
import { triggerText } from "./trigger-text.ts";

type Automation = components["schemas"]["Automation"];
const PAGE_SIZE = 50;

const columnsOf = (factoryUid: string): readonly Column<Automation>[] => [
  {
    title: "Automation",
    cell: ({ uid, name }) => (
      <Link
        to="/factories/$factoryUid/automations/$automationUid"
        params={{ factoryUid, automationUid: uid }}
        className="primary-link truncate"
      >
        <SafeText>{name}</SafeText>
      </Link>
    ),
  },
  { title: "Triggers", cell: ({ triggers }) => <SafeText>{triggers.map(triggerText).join(", ")}</SafeText> },
  { title: "Agent", cell: ({ agent }) => <SafeText>{agent ?? "foreman"}</SafeText> },
  {
    title: "State",
    cell: ({ enabled }) =>
      enabled ? <span className="badge good">Enabled</span> : <span className="badge">Disabled</span>,
  },
  { title: "Defined by", cell: ({ management }) => (management === "files" ? "files" : "Console or API") },
  { title: "Last fired", cell: ({ last_fired_at: at }) => <Time at={at} /> },
];

/** The automations of a factory. */
function AutomationsPage({ factoryUid }: FactoryTab): ReactNode {
  const { cursor } = getRouteApi("/factories/$factoryUid/automations").useSearch();
  const navigate = useNavigate({ from: "/factories/$factoryUid/automations" });
  const mayManage = useMay("factory.manage");
  const [isCreating, setCreating] = useState(false);
  return (
    <>
      {isCreating && <AutomationDialog factoryUid={factoryUid} onClose={() => setCreating(false)} />}
      <div className="filters">
        <Button look="primary" disabled={!mayManage} onClick={() => setCreating(true)}>
          <Plus size={14} aria-hidden />
          Create automation
        </Button>
        <CopyCommands path={`/factory/${factoryUid}/automations`} cli={`automation list --factory ${factoryUid}`} />
      </div>
      <ListView
        queryKey={["factories", factoryUid, "automations"]}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/factory/{uid}/automations", {
              params: { path: { uid: factoryUid }, query: { limit: PAGE_SIZE, cursor: at } },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ automations }) => automations.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          <EmptyState title="No automations yet">
            An automation starts runs when a webhook delivers, a schedule is due, a task changes its stage, or something
            happens at a code host. “Create automation” is above; or add <code>automations/NAME/automation.md</code> to
            the definition, or <code>npx millwright automation create FILE.json --factory {factoryUid}</code>
          </EmptyState>
        }
      >
        {({ automations }) => (
          <DataTable
            caption="Automations"
            columns={columnsOf(factoryUid)}
            rows={automations}
            keyOf={({ uid }) => uid}
          />
        )}
      </ListView>
    </>
  );
}

export default inFactory(AutomationsPage);
