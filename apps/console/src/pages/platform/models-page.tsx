import type { ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { modelsQuery } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { TextFilter } from "../../ui/filters.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { dollars } from "../../ui/money.ts";
import { Card, EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";

type Model = components["schemas"]["Model"];
type ModelPrice = components["schemas"]["ModelPrice"];
type ComputePrice = components["schemas"]["ComputePrice"];
const PAGE_SIZE = 20;

const price = (amount: number | null | undefined): string =>
  amount === null || amount === undefined ? "–" : dollars(amount);

const MODEL_PRICES: readonly Column<ModelPrice>[] = [
  { title: "Model", cell: ({ model_id: id }) => <SafeText>{id}</SafeText> },
  { title: "Version", isNumber: true, cell: ({ version }) => version },
  { title: "Input", isNumber: true, cell: (row) => price(row.input_per_million_usd) },
  { title: "Output", isNumber: true, cell: (row) => price(row.output_per_million_usd) },
  { title: "Cache read", isNumber: true, cell: (row) => price(row.cache_read_per_million_usd) },
  { title: "Cache write", isNumber: true, cell: (row) => price(row.cache_write_per_million_usd) },
  { title: "From", cell: ({ effective_from: at }) => <Time at={at} /> },
];

const COMPUTE_PRICES: readonly Column<ComputePrice>[] = [
  { title: "Version", isNumber: true, cell: ({ version }) => version },
  { title: "vCPU per hour", isNumber: true, cell: (row) => price(row.vcpu_hour_usd) },
  { title: "GB memory per hour", isNumber: true, cell: (row) => price(row.gb_hour_usd) },
  { title: "Per run", isNumber: true, cell: (row) => price(row.platform_run_usd) },
  { title: "From", cell: ({ effective_from: at }) => <Time at={at} /> },
  {
    title: "Correction of earlier charges",
    cell: ({ repricing }) =>
      repricing.status === "running"
        ? "Running"
        : repricing.correction_count === 0
          ? "–"
          : `${repricing.run_count} runs, ${repricing.corrected_usd < 0 ? "−" : ""}${dollars(Math.abs(repricing.corrected_usd))}`,
  },
];

const modelColumns = (defaultId: string): readonly Column<Model>[] => [
  {
    title: "Model",
    cell: ({ id, display_name: name }) => (
      <>
        <SafeText>{name}</SafeText> <code className="soft">{id}</code>
        {id === defaultId && <span className="badge plain">Default</span>}
      </>
    ),
  },
  { title: "Provider", cell: ({ provider }) => provider },
  { title: "Images", cell: ({ vision_supported: sees }) => (sees ? "Yes" : "No") },
  {
    title: "Status",
    cell: ({ disabled, disabled_message: message, disable_reason: reason }) =>
      disabled ? (
        <>
          <span className="badge bad">Disabled</span>{" "}
          <span className="soft small">
            <SafeText>{message ?? reason ?? ""}</SafeText>
          </span>
        </>
      ) : (
        <span className="badge good">Available</span>
      ),
  },
  { title: "Input", isNumber: true, cell: ({ cost }) => price(cost?.input_per_million_tokens) },
  { title: "Output", isNumber: true, cell: ({ cost }) => price(cost?.output_per_million_tokens) },
  { title: "Cache read", isNumber: true, cell: ({ cost }) => price(cost?.input_cache_read_per_million_tokens) },
  { title: "Cache write", isNumber: true, cell: ({ cost }) => price(cost?.input_cache_write_per_million_tokens) },
];

/** The models that runs can use, and the price books. */
export default function ModelsPage(): ReactNode {
  const search = getRouteApi("/models").useSearch();
  const navigate = useNavigate({ from: "/models" });
  const { data, error, refetch } = useQuery(modelsQuery);
  const term = (search.q ?? "").toLowerCase();
  const models = data?.models.filter(({ id, display_name: name }) => `${id} ${name}`.toLowerCase().includes(term));
  return (
    <Page
      title="Models and prices"
      subtitle="Prices of models are US dollars per million tokens."
      actions={<CopyCommands path="/agent/models" cli="model list" />}
    >
      <div className="filters" role="search">
        <TextFilter
          label="Search models"
          value={search.q}
          onChange={(q) => void navigate({ search: (old) => ({ ...old, q }), replace: true })}
        />
      </div>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      {data && models?.length === 0 && (
        <EmptyState title={term === "" ? "No models" : "No model matches the search"}>
          {term === "" ? "The operator configures the providers of models." : "Change or clear the search."}
        </EmptyState>
      )}
      {data && models && models.length > 0 && (
        <DataTable
          caption="Models"
          columns={modelColumns(data.default_model_id)}
          rows={models}
          keyOf={({ id }) => id}
        />
      )}
      <Card
        title="Price book of models"
        actions={<CopyCommands path="/platform/model-prices" cli="model-price list" />}
      >
        <ListView
          queryKey={["model-prices"]}
          load={(at, signal) =>
            dataOf(
              api.GET("/api/v1/platform/model-prices", {
                params: { query: { limit: PAGE_SIZE, ...(at === undefined ? {} : { cursor: at }) } },
                signal,
              }),
            )
          }
          pageInfoOf={({ page_info: info }) => info}
          isEmpty={({ prices }) => prices.length === 0}
          cursor={search.cursor}
          onCursor={(cursor) => void navigate({ search: (old) => ({ ...old, cursor }) })}
          empty={
            <p className="soft">
              No prices of the installation. A platform administrator adds one with{" "}
              <code>npx millwright model-price add</code>.
            </p>
          }
        >
          {({ prices }) => (
            <DataTable
              caption="Price book of models"
              columns={MODEL_PRICES}
              rows={prices}
              keyOf={({ model_id: id, version }) => `${id} ${version}`}
            />
          )}
        </ListView>
      </Card>
      <Card title="Price book of compute" actions={<CopyCommands path="/platform/compute-prices" cli="price list" />}>
        <ListView
          queryKey={["compute-prices"]}
          load={(at, signal) =>
            dataOf(
              api.GET("/api/v1/platform/compute-prices", {
                params: { query: { limit: PAGE_SIZE, ...(at === undefined ? {} : { cursor: at }) } },
                signal,
              }),
            )
          }
          pageInfoOf={({ page_info: info }) => info}
          isEmpty={({ prices }) => prices.length === 0}
          cursor={search.compute_cursor}
          onCursor={(cursor) => void navigate({ search: (old) => ({ ...old, compute_cursor: cursor }) })}
          empty={
            <p className="soft">
              Compute is free. A platform administrator adds prices with <code>npx millwright price add</code>.
            </p>
          }
        >
          {({ prices }) => (
            <DataTable
              caption="Price book of compute"
              columns={COMPUTE_PRICES}
              rows={prices}
              keyOf={({ version }) => String(version)}
            />
          )}
        </ListView>
      </Card>
    </Page>
  );
}
