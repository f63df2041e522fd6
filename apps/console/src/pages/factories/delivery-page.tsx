import type { ReactNode } from "react";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, Facts } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { DecisionTable } from "./decision-table.tsx";
import { JsonBlock } from "./json-block.tsx";
import { ReplayForm } from "./replay-form.tsx";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

const ROUTE = "/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryUid";
const DECISIONS_MAX = 100;
const REFRESH_MS = 5_000;

/** A delivery: its payload, why automations did or did not fire, and its replay. */
function DeliveryPage({ factoryUid }: FactoryTab): ReactNode {
  const { webhookUid, deliveryUid } = getRouteApi(ROUTE).useParams();
  const {
    data: delivery,
    error,
    refetch,
  } = useQuery({
    queryKey: ["factories", factoryUid, "deliveries", webhookUid, deliveryUid],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/webhooks/{webhookUid}/deliveries/{deliveryUid}", {
          params: { path: { uid: factoryUid, webhookUid, deliveryUid } },
          signal,
        }),
      ),
  });
  if (!delivery)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  const isAccepted = delivery.outcome === "accepted";
  return (
    <>
      <Card
        title="Delivery"
        actions={
          <span className="line">
            <Link
              to="/factories/$factoryUid/webhooks/$webhookUid"
              params={{ factoryUid, webhookUid }}
              className="button small"
            >
              All deliveries
            </Link>
            <CopyCommands
              path={`/factory/${factoryUid}/webhooks/${webhookUid}/deliveries/${deliveryUid}`}
              cli={`webhook delivery ${webhookUid} ${deliveryUid}`}
            />
          </span>
        }
      >
        <div className="stack">
          <Facts
            entries={[
              [
                "Result",
                <span key="result" className={`badge ${isAccepted ? "good" : "bad"}`}>
                  {delivery.label}
                </span>,
              ],
              ["Received", <Time key="received" at={delivery.received_at} />],
              ["Delivery id", delivery.delivery_id && <SafeText>{delivery.delivery_id}</SafeText>],
              ["Id", <Id key="id" value={deliveryUid} />],
              ["Size", `${delivery.size_bytes.toLocaleString()} bytes`],
            ]}
          />
          {delivery.payload === undefined ? (
            <p className="soft">The payload is not stored: the delivery was not accepted.</p>
          ) : (
            <JsonBlock label="Payload" value={delivery.payload} />
          )}
        </div>
      </Card>
      {isAccepted && (
        <>
          <Card title="Why automations did or did not fire">
            <Decisions factoryUid={factoryUid} deliveryUid={deliveryUid} />
          </Card>
          <ReplayForm factoryUid={factoryUid} webhookUid={webhookUid} deliveryUid={deliveryUid} />
        </>
      )}
    </>
  );
}

function Decisions({ factoryUid, deliveryUid }: { factoryUid: string; deliveryUid: string }): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["factories", factoryUid, "decisions", "about", deliveryUid],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/decisions", {
          params: { path: { uid: factoryUid }, query: { event_uid: deliveryUid, limit: DECISIONS_MAX } },
          signal,
        }),
      ),
    refetchInterval: REFRESH_MS,
  });
  if (!data)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  if (data.decisions.length === 0)
    return (
      <p>
        No decision yet. If there is none after a few seconds, no automation of the factory listens to webhooks.{" "}
        <Link to="/factories/$factoryUid/automations" params={{ factoryUid }}>
          Automations
        </Link>
      </p>
    );
  return <DecisionTable factoryUid={factoryUid} decisions={data.decisions} />;
}

export default inFactory(DeliveryPage);
