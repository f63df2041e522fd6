import type { ReactNode } from "react";
import type { components } from "../../gen/api.ts";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { SafeText } from "../../ui/safe-text.tsx";

type PlanItem = components["schemas"]["PlanItem"];

const LOOKS: Readonly<Record<string, string>> = { create: "good", update: "busy", delete: "bad" };

const COLUMNS: readonly Column<PlanItem>[] = [
  { title: "Change", cell: ({ action }) => <span className={`badge ${LOOKS[action] ?? ""}`}>{action}</span> },
  { title: "Kind", cell: ({ kind }) => kind },
  { title: "Name", cell: ({ name }) => <SafeText>{name}</SafeText> },
  { title: "Fields", cell: ({ changed_fields: fields }) => <SafeText>{fields.join(", ") || "–"}</SafeText> },
];

/** Shows the changes that applying a definition makes. */
export const PlanTable = ({ caption, items }: { caption: string; items: readonly PlanItem[] }): ReactNode => (
  <DataTable caption={caption} columns={COLUMNS} rows={items} keyOf={({ kind, name }) => `${kind} ${name}`} />
);
