import type { ReactNode } from "react";
import { keepPreviousData, useQuery, type QueryKey } from "@tanstack/react-query";
import { Button } from "./button.tsx";
import { ErrorView } from "./error-view.tsx";

export type PageInfo = { readonly has_next_page: boolean; readonly next_cursor?: string };

type Props<Result> = {
  /** Starts with a name that live updates invalidate, such as "runs". */
  readonly queryKey: QueryKey;
  readonly load: (cursor: string | undefined, signal: AbortSignal) => Promise<Result>;
  readonly pageInfoOf: (result: Result) => PageInfo;
  readonly isEmpty: (result: Result) => boolean;
  /** The cursor in the URL. */
  readonly cursor: string | undefined;
  /** Writes the cursor to the URL as a new history entry, so that "back" returns to the page before. */
  readonly onCursor: (cursor: string | undefined) => void;
  /** Reads the page again in this interval. For lists without live updates. */
  readonly refetchMs?: number;
  readonly empty: ReactNode;
  readonly children: (result: Result) => ReactNode;
};

/** Loads one page of a list, keeps the last page visible while the next one loads, and shows errors and the pager. */
export function ListView<Result>(props: Props<Result>): ReactNode {
  const { queryKey, load, pageInfoOf, isEmpty, cursor, onCursor, refetchMs, empty, children } = props;
  const { data, error, refetch, isPlaceholderData } = useQuery({
    queryKey: [...queryKey, cursor ?? ""],
    queryFn: ({ signal }) => load(cursor, signal),
    placeholderData: keepPreviousData,
    refetchInterval: refetchMs ?? false,
  });
  if (data === undefined)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  const { has_next_page: hasNext, next_cursor: next } = pageInfoOf(data);
  return (
    <>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      <div aria-busy={isPlaceholderData}>{isEmpty(data) && cursor === undefined ? empty : children(data)}</div>
      {(hasNext || cursor !== undefined) && (
        <nav className="pager" aria-label="Pages">
          <Button isSmall disabled={cursor === undefined} onClick={() => onCursor(undefined)}>
            First page
          </Button>
          <Button isSmall disabled={cursor === undefined} onClick={() => history.back()}>
            Previous
          </Button>
          <Button isSmall disabled={!hasNext || isPlaceholderData} onClick={() => onCursor(next)}>
            Next page
          </Button>
        </nav>
      )}
    </>
  );
}
