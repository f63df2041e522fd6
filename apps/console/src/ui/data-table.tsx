import type { MouseEvent, ReactNode } from "react";
import { ArrowDown, ArrowUp } from "lucide-react";

export type Column<Row> = {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** Value of `sort_by` that sorts by this column. */
  readonly sortBy?: string;
  readonly isNumber?: boolean;
};

export type Sort = { readonly by: string; readonly order: "asc" | "desc" };

type Props<Row> = {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly sort?: Sort;
  readonly onSort?: (sort: Sort) => void;
};

/** Elements that handle a click in a row themselves. */
const CONTROLS = "a, button, input, select, textarea, label, summary";

/** Opens the primary link of a row on a click beside it. Selecting text is no such click. */
function openRow(event: MouseEvent<HTMLTableRowElement>): void {
  const isControl = (event.target as Element).closest(CONTROLS) !== null;
  if (isControl || event.ctrlKey || event.metaKey || event.shiftKey || String(getSelection()) !== "") return;
  event.currentTarget.querySelector<HTMLElement>(".primary-link")?.click();
}

/**
 * A table whose headers sort it. The caption describes it to screen readers. A row with a link of the class
 * `primary-link` opens it on a click anywhere.
 */
export function DataTable<Row>({ caption, columns, rows, keyOf, sort, onSort }: Props<Row>): ReactNode {
  return (
    <div className="table-frame" role="region" aria-label={caption} tabIndex={0}>
      <table className="table">
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Header key={column.title} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} onClick={openRow}>
              {columns.map(({ title, cell, isNumber }) => (
                <td key={title} className={isNumber ? "number" : undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type HeaderProps = {
  readonly column: Pick<Column<never>, "title" | "sortBy" | "isNumber">;
  readonly sort: Sort | undefined;
  readonly onSort: ((sort: Sort) => void) | undefined;
};

function Header({ column: { title, sortBy, isNumber }, sort, onSort }: HeaderProps): ReactNode {
  const className = isNumber ? "number" : undefined;
  if (sortBy === undefined || !onSort)
    return (
      <th scope="col" className={className}>
        {title}
      </th>
    );
  const order = sort?.by === sortBy ? sort.order : undefined;
  return (
    <th
      scope="col"
      className={className}
      aria-sort={order === undefined ? undefined : order === "asc" ? "ascending" : "descending"}
    >
      <button type="button" onClick={() => onSort({ by: sortBy, order: order === "desc" ? "asc" : "desc" })}>
        {title}
        {order === "asc" && <ArrowUp size={12} aria-hidden />}
        {order === "desc" && <ArrowDown size={12} aria-hidden />}
      </button>
    </th>
  );
}
