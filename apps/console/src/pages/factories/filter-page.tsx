import { useEffect, useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { JsonBlock } from "./json-block.tsx";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

type Delivery = components["schemas"]["Delivery"];
type Tested = components["schemas"]["TestedFilter"];
type Row = { readonly delivery: Delivery; readonly tested: Tested | undefined; readonly error: unknown };

const ROUTE = "/factories/$factoryUid/webhooks/$webhookUid/filter";
const TYPING_MS = 400;
/** Each edit tests all of them, one request each. */
const DELIVERIES_MAX = 20;

/** Edits a payload filter and shows which of the newest stored deliveries it matches. Nothing is stored. */
function FilterPage({ factoryUid }: FactoryTab): ReactNode {
  const { webhookUid } = getRouteApi(ROUTE).useParams();
  const { filter = "{}" } = getRouteApi(ROUTE).useSearch();
  const navigate = useNavigate({ from: ROUTE });
  const [text, setText] = useState(filter);
  const parsed = parse(text);
  useEffect(() => {
    if (text === filter || parse(text).fault !== undefined) return undefined;
    const timer = setTimeout(() => void navigate({ search: { filter: text }, replace: true }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, filter, navigate]);
  const { data, error, refetch } = useQuery({
    queryKey: ["factories", factoryUid, "deliveries", webhookUid, "newest"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/webhooks/{webhookUid}/deliveries", {
          params: { path: { uid: factoryUid, webhookUid }, query: { limit: DELIVERIES_MAX } },
          signal,
        }),
      ),
  });
  const deliveries = data?.deliveries.filter(({ outcome }) => outcome === "accepted") ?? [];
  const { value: pattern } = parse(filter);
  const results = useQueries({
    queries: deliveries.map(({ uid }) => ({
      queryKey: ["factories", factoryUid, "filter", uid, filter],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        dataOf(
          api.POST("/api/v1/factory/{uid}/webhooks/test-filter", {
            params: { path: { uid: factoryUid } },
            body: { webhook_ids: [webhookUid], payload_filter: pattern, delivery_uid: uid },
            signal,
          }),
        ),
      enabled: pattern !== undefined,
      placeholderData: keepPreviousData,
    })),
  });
  const rows = deliveries.map((delivery, index): Row => ({
    delivery,
    tested: results[index]!.data,
    error: results[index]!.error,
  }));
  const failure = rows.find((row) => row.error !== null)?.error;
  const matching = rows.filter(({ tested }) => tested?.would_trigger).length;
  return (
    <>
      <Card
        title="Payload filter"
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
              path={`/factory/${factoryUid}/webhooks/test-filter`}
              method="POST"
              body={{ webhook_ids: [webhookUid], payload_filter: pattern, delivery_uid: deliveries[0]?.uid }}
            />
          </span>
        }
      >
        <div className="stack">
          <p className="soft">
            A pattern that mirrors the body: a list of allowed values, or <code>in</code>, <code>not_in</code>,{" "}
            <code>exists</code>, for example <code>{`{"status": ["firing"]}`}</code>. Everything must match. The filter
            is not stored; copy the trigger below into an automation.
          </p>
          <textarea
            className="textarea mono file-text"
            aria-label="Payload filter"
            aria-invalid={parsed.fault !== undefined}
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          {parsed.fault !== undefined && (
            <p role="alert" className="notice bad">
              {parsed.fault}
            </p>
          )}
          {pattern !== undefined && (
            <JsonBlock
              label="Trigger"
              value={{
                provider: "webhook",
                event: "received",
                filter: { webhook_ids: [webhookUid], payload: pattern },
              }}
            />
          )}
        </div>
      </Card>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {failure !== undefined && <ErrorView error={failure} />}
      {data && deliveries.length === 0 && (
        <EmptyState title="No stored deliveries">
          Send a delivery to the webhook; accepted ones are tested against the filter here.
        </EmptyState>
      )}
      {deliveries.length > 0 && failure === undefined && (
        <>
          <p role="status">
            {matching} of the newest {deliveries.length} accepted deliveries match.
          </p>
          <DataTable
            caption="Deliveries tested against the filter"
            columns={columnsOf(factoryUid)}
            rows={rows}
            keyOf={({ delivery }) => delivery.uid}
          />
        </>
      )}
    </>
  );
}

type Parsed = { readonly value?: object; readonly fault?: string };

function parse(text: string): Parsed {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? { value }
      : { fault: "The filter must be a JSON object." };
  } catch (error) {
    return { fault: `The filter is not JSON: ${(error as Error).message}` };
  }
}

const columnsOf = (factoryUid: string): readonly Column<Row>[] => [
  { title: "Received", cell: ({ delivery }) => <Time at={delivery.received_at} /> },
  {
    title: "Delivery",
    cell: ({ delivery: { uid, webhook_uid: webhookUid, delivery_id: id } }) => (
      <Link
        to="/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryUid"
        params={{ factoryUid, webhookUid, deliveryUid: uid }}
        className="truncate"
      >
        <SafeText>{id ?? uid}</SafeText>
      </Link>
    ),
  },
  {
    title: "Result",
    cell: ({ tested }) =>
      tested ? <span className={`badge ${tested.would_trigger ? "good" : "bad"}`}>{tested.label}</span> : "…",
  },
  {
    title: "Does not match",
    cell: ({ tested }) => {
      const paths = tested?.checks.payload.failed_paths ?? [];
      return paths.length === 0 ? (
        "–"
      ) : (
        <code>
          <SafeText>{paths.join(", ")}</SafeText>
        </code>
      );
    },
  },
];

export default inFactory(FilterPage);
