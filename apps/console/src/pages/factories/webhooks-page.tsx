import { useState, type ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton, CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { ShownOnceDialog } from "../../ui/shown-once.tsx";
import { Time } from "../../ui/time.tsx";
import { webhooksQuery } from "./factory-queries.ts";
import { inFactory, type FactoryTab } from "./in-factory.tsx";
import { WebhookDialog } from "./webhook-dialog.tsx";

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
    ...webhooksQuery(factoryUid),
    refetchInterval: REFRESH_MS,
  });
  const mayManage = useMay("webhook.manage");
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<components["schemas"]["WebhookWithSecret"]>();
  if (!data)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  return (
    <>
      <div className="filters">
        <Button look="primary" disabled={!mayManage} onClick={() => setCreating(true)}>
          <Plus size={14} aria-hidden />
          Create webhook
        </Button>
        <CopyCommands path={`/factory/${factoryUid}/webhooks`} cli={`webhook list --factory ${factoryUid}`} />
      </div>
      {data.webhooks.length === 0 ? (
        <EmptyState title="No webhooks yet">
          A webhook is an address to which outside systems POST JSON. Create one here, or with{" "}
          <code>npx millwright webhook create ci --factory {factoryUid}</code>
        </EmptyState>
      ) : (
        <DataTable caption="Webhooks" columns={columnsOf(factoryUid)} rows={data.webhooks} keyOf={({ uid }) => uid} />
      )}
      {isCreating && (
        <WebhookDialog
          factoryUid={factoryUid}
          onClose={() => setCreating(false)}
          onCreated={(webhook) => {
            setCreating(false);
            if (webhook.secret !== undefined) setCreated(webhook);
          }}
        />
      )}
      {created?.secret !== undefined && (
        <ShownOnceDialog
          title={`Secret of ${created.name}`}
          noun="secret"
          value={created.secret}
          onClose={() => setCreated(undefined)}
        >
          Senders to <code>{created.ingress_url}</code> authenticate with it.
        </ShownOnceDialog>
      )}
    </>
  );
}

export default inFactory(WebhooksPage);
