import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { CopyButton, CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

type Webhook = components["schemas"]["Webhook"];
const REFRESH_MS = 10_000;

const columnsOf = (factoryUid: string): readonly Column<Webhook>[] => [
  {
    title: "Webhook",
    cell: ({ uid, name }) => (
      <Link
        to="/factories/$factoryUid/webhooks/$webhookUid"
        params={{ factoryUid, webhookUid: uid }}
        className="primary-link truncate"
      >
        <SafeText>{name}</SafeText>
      </Link>
    ),
  },
  {
    title: "Authentication",
    cell: ({ auth_mode: mode, signature_scheme: scheme }) => `${mode.replace("_", " ")}${scheme ? ` (${scheme})` : ""}`,
  },
  {
    title: "State",
    cell: ({ enabled }) =>
      enabled ? <span className="badge good">Enabled</span> : <span className="badge">Disabled</span>,
  },
  {
    title: "Address",
    cell: ({ ingress_url: url }) => (
      <span className="line">
        <code className="truncate">{url}</code>
        <CopyButton text={url} label="address" />
      </span>
    ),
  },
  { title: "Last delivery", cell: ({ last_delivery_at: at }) => <Time at={at} /> },
];

/** The webhooks of a factory. */
function WebhooksPage({ factoryUid }: FactoryTab): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["factories", factoryUid, "webhooks"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/factory/{uid}/webhooks", { params: { path: { uid: factoryUid } }, signal })),
    refetchInterval: REFRESH_MS,
  });
  if (!data)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  if (data.webhooks.length === 0)
    return (
      <EmptyState title="No webhooks yet">
        A webhook is an address to which outside systems POST JSON. Create one:{" "}
        <code>npx millwright webhook create ci --factory {factoryUid}</code>
      </EmptyState>
    );
  return (
    <>
      <div className="filters">
        <CopyCommands path={`/factory/${factoryUid}/webhooks`} cli={`webhook list --factory ${factoryUid}`} />
      </div>
      <DataTable caption="Webhooks" columns={columnsOf(factoryUid)} rows={data.webhooks} keyOf={({ uid }) => uid} />
    </>
  );
}

export default inFactory(WebhooksPage);
