import type { ReactNode } from "react";
import type { UseQueryResult } from "@tanstack/react-query";
import { ErrorView } from "../../ui/error-view.tsx";

/** Shows the data of a query, its error, or that it is loading. */
export function Loaded<Data>({
  query: { data, error, refetch, isPlaceholderData },
  children,
}: {
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
}): ReactNode {
  if (error) return <ErrorView error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <p className="soft">Loading…</p>;
  return (
    <div className="charts" aria-busy={isPlaceholderData}>
      {children(data)}
    </div>
  );
}
