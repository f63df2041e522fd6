import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { dollars } from "../../ui/money.ts";
import { Card } from "../../ui/page.tsx";
import { PullRequestName, PullRequestState, RunLinks } from "../../ui/pull-request.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { csvOf, saveFile } from "../../ui/save-file.ts";
import { Time } from "../../ui/time.tsx";
import { rangeOf } from "./metrics-search.ts";
import { FRESH_MS, type RangeSearch } from "../../ui/periods.ts";

type Costed = components["schemas"]["FactoryCostedPullRequest"];
const SHOWN = 10;

const COLUMNS: readonly Column<Costed>[] = [
  { title: "Pull request", cell: (pullRequest) => <PullRequestName pullRequest={pullRequest} /> },
  { title: "State", cell: ({ state }) => <PullRequestState state={state} /> },
  { title: "Cost", isNumber: true, cell: (each) => dollars(each.dollars.total) },
  {
    title: "Models",
    cell: ({ models }) => <SafeText>{models.map((each) => each.model_id).join(", ") || "–"}</SafeText>,
  },
  { title: "Started by", cell: ({ creator }) => <SafeText>{creator?.display_name ?? "–"}</SafeText> },
  { title: "First reported", cell: ({ first_seen_at: at }) => <Time at={at} /> },
  { title: "Runs", cell: ({ runs }) => <RunLinks runs={runs} /> },
];

const csvRows = (data: readonly Costed[]) => [
  ["url", "title", "state", "dollars", "inference", "compute", "platform", "source", "first_seen_at"],
  ...data.map(({ url, title, state, dollars: cost, source, first_seen_at: at }) => [
    ...[url, title, state, cost.total, cost.inference, cost.compute, cost.platform, source, at],
  ]),
];

/** The costliest pull requests of the range. */
export function TopPullRequests({ factoryUid, search }: { factoryUid: string; search: RangeSearch }): ReactNode {
  const query = { ...rangeOf(search), limit: SHOWN };
  const { data, error, refetch } = useQuery({
    queryKey: ["costs", factoryUid, "top", query],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/costs/per-pr/top", { params: { path: { uid: factoryUid }, query }, signal }),
      ),
    staleTime: FRESH_MS,
  });
  if (error) return <ErrorView error={error} onRetry={() => void refetch()} />;
  if (!data) return <p className="soft">Loading…</p>;
  return (
    <Card
      title="Costliest pull requests"
      actions={
        <Button
          isSmall
          look="quiet"
          aria-label="Save “Costliest pull requests” as CSV"
          onClick={() => saveFile("costliest-pull-requests.csv", csvOf(csvRows(data.data)))}
        >
          <Download size={13} aria-hidden />
          CSV
        </Button>
      }
    >
      {data.data.length === 0 ? (
        <p className="soft">
          No run reported a pull request in this range. Choose an earlier start, or dispatch work that ends in a pull
          request.
        </p>
      ) : (
        <DataTable caption="Costliest pull requests" columns={COLUMNS} rows={data.data} keyOf={({ url }) => url} />
      )}
    </Card>
  );
}
