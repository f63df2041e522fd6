import { useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton, CopyCommands, Id } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { Card, EmptyState, Facts } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { ShownOnceDialog } from "../../ui/shown-once.tsx";
import { Time } from "../../ui/time.tsx";
import { webhookQuery } from "./factory-queries.ts";
import { inFactory, type FactoryTab } from "./in-factory.tsx";
import { RotateDialog, WebhookDialog } from "./webhook-dialog.tsx";

type Delivery = components["schemas"]["Delivery"];
type Webhook = components["schemas"]["Webhook"];
const ROUTE = "/factories/$factoryUid/webhooks/$webhookUid";
const PAGE_SIZE = 50;
const REFRESH_MS = 5_000;

export const deliveryLook = ({ outcome }: Pick<Delivery, "outcome">): string =>
  outcome === "accepted" ? "good" : outcome === "duplicate" ? "" : "bad";

const columnsOf = (factoryUid: string): readonly Column<Delivery>[] => [
  {
    title: "Received",
    cell: ({ received_at: at }) => <Time at={at} />,
  },
  {
    title: "Delivery",
    cell: ({ uid, webhook_uid: webhookUid, delivery_id: id }) => (
      <Link
        to="/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryUid"
        params={{ factoryUid, webhookUid, deliveryUid: uid }}
        className="primary-link truncate"
      >
        <SafeText>{id ?? uid}</SafeText>
      </Link>
    ),
  },
  {
    title: "Result",
    cell: (delivery) => <span className={`badge ${deliveryLook(delivery)}`}>{delivery.label}</span>,
  },
  { title: "Bytes", isNumber: true, cell: ({ size_bytes: size }) => size.toLocaleString() },
  {
    title: "Runs",
    cell: ({ runs }) =>
      runs.length === 0 ? (
        <span className="soft">none</span>
      ) : (
        <span className="line">
          {runs.map(({ run_id: runId, automation }) => (
            <Link key={runId} to="/runs/$runId" params={{ runId }}>
              <SafeText>{automation}</SafeText>
            </Link>
          ))}
        </span>
      ),
  },
];

/** A webhook and the log of its deliveries. */
function WebhookPage({ factoryUid }: FactoryTab): ReactNode {
  const { webhookUid } = getRouteApi(ROUTE).useParams();
  const { cursor } = getRouteApi(ROUTE).useSearch();
  const navigate = useNavigate({ from: ROUTE });
  const { data: webhook, error, refetch } = useQuery(webhookQuery(factoryUid, webhookUid));
  if (!webhook)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  return (
    <>
      <Card
        title={<SafeText>{webhook.name}</SafeText>}
        actions={
          <span className="line">
            <WebhookActions factoryUid={factoryUid} webhook={webhook} />
            <Link
              to="/factories/$factoryUid/webhooks/$webhookUid/filter"
              params={{ factoryUid, webhookUid }}
              className="button small"
            >
              Filter editor
            </Link>
            <CopyCommands
              path={`/factory/${factoryUid}/webhooks/${webhookUid}/deliveries`}
              cli={`webhook deliveries ${webhookUid}`}
            />
          </span>
        }
      >
        <Facts
          entries={[
            [
              "Address",
              <span key="address" className="line">
                <code>{webhook.ingress_url}</code>
                <CopyButton text={webhook.ingress_url} label="address" />
              </span>,
            ],
            [
              "State",
              <span key="state" className={`badge ${webhook.enabled ? "good" : ""}`}>
                {webhook.enabled ? "Enabled" : webhook.secret_set ? "Disabled" : "Disabled: no secret"}
              </span>,
            ],
            [
              "Authentication",
              `${webhook.auth_mode.replace("_", " ")}${webhook.signature_scheme ? ` (${webhook.signature_scheme})` : ""}`,
            ],
            ["Managed secret", webhook.secret_name && <SafeText>{webhook.secret_name}</SafeText>],
            ["Delivery id header", webhook.delivery_id_header && <SafeText>{webhook.delivery_id_header}</SafeText>],
            ["Defined by", webhook.management === "files" ? "the factory's files" : "the API"],
            ["Id", <Id key="id" value={webhook.uid} />],
          ]}
        />
      </Card>
      <ListView
        queryKey={["factories", factoryUid, "deliveries", webhookUid]}
        refetchMs={REFRESH_MS}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/factory/{uid}/webhooks/{webhookUid}/deliveries", {
              params: { path: { uid: factoryUid, webhookUid }, query: { limit: PAGE_SIZE, cursor: at } },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ deliveries }) => deliveries.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          <EmptyState title="No deliveries yet">
            POST a JSON body to the address above. Refused deliveries are listed too; a sender that does not appear here
            does not reach the platform.
          </EmptyState>
        }
      >
        {({ deliveries }) => (
          <DataTable caption="Deliveries" columns={columnsOf(factoryUid)} rows={deliveries} keyOf={({ uid }) => uid} />
        )}
      </ListView>
    </>
  );
}

function WebhookActions({ factoryUid, webhook }: FactoryTab & { webhook: Webhook }): ReactNode {
  const mayManage = useMay("webhook.manage");
  const [dialog, setDialog] = useState<"edit" | "rotate">();
  const [secret, setSecret] = useState<string>();
  const close = (): void => setDialog(undefined);
  return (
    <>
      {webhook.management === "live" && (
        <Button isSmall disabled={!mayManage} onClick={() => setDialog("edit")}>
          Edit
        </Button>
      )}
      <Button isSmall disabled={!mayManage} onClick={() => setDialog("rotate")}>
        Rotate secret
      </Button>
      {dialog === "edit" && <WebhookDialog factoryUid={factoryUid} webhook={webhook} onClose={close} />}
      {dialog === "rotate" && (
        <RotateDialog
          factoryUid={factoryUid}
          webhookUid={webhook.uid}
          onClose={close}
          onRotated={({ secret: generated }) => {
            close();
            setSecret(generated);
          }}
        />
      )}
      {secret !== undefined && (
        <ShownOnceDialog
          title={`Secret of ${webhook.name}`}
          noun="secret"
          value={secret}
          onClose={() => setSecret(undefined)}
        >
          Senders authenticate with it from now on.
        </ShownOnceDialog>
      )}
    </>
  );
}

export default inFactory(WebhookPage);
