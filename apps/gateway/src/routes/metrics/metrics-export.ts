import { json, type Reply, type RequestInfo } from "../../rest/index.ts";
import { csvLine } from "../formats/csv.ts";
import { exportTypeOf, type ExportType } from "../formats/export-format.ts";
import { textStreamReply } from "../formats/text-stream.ts";

/** A column of CSV: its name, and a function that returns its value for a record. */
export type Column<T> = { readonly name: string; readonly value: (record: T) => unknown };

/** Returns one column per member, with the member's name and value. */
export const members = <T extends object>(...names: readonly (keyof T & string)[]): Column<T>[] =>
  names.map((name) => ({ name, value: (record) => record[name] }));

type Export<T> = {
  readonly columns: readonly Column<T>[];
  readonly pages: AsyncIterable<readonly T[]>;
  readonly name: string;
};

/** Describes exports in the OpenAPI description of each route that has them. */
export const EXPORT_TEXT =
  "`Accept: application/x-ndjson` returns one record per line, `Accept: text/csv` one row per record after a header. Texts that a spreadsheet " +
  "would evaluate as a formula begin with an apostrophe. Any other `Accept` returns JSON.";

/** Returns the JSON response of a resource that also has exports. */
export const negotiatedJson = (body: unknown): Reply =>
  json(200, body, { "content-type": "application/json; charset=utf-8", vary: "Accept" });

/** Returns the export type that `Accept` prefers, or undefined for JSON. */
export const requestedExport = ({ headers }: RequestInfo): ExportType | undefined => exportTypeOf(headers.accept);

/** Streams records as lines. If the connection ends without the last chunk, the export is incomplete. */
export function exportReply<T extends object>(
  type: ExportType,
  request: RequestInfo,
  { columns, pages, name }: Export<T>,
): Reply {
  const isCsv = type === "text/csv";
  const disposition = `attachment; filename="${name}.${isCsv ? "csv" : "ndjson"}"`;
  return textStreamReply(
    isCsv ? `${type}; charset=utf-8` : type,
    request,
    isCsv ? csvOf(columns, pages) : ndjsonOf(pages),
    {
      headers: { "content-disposition": disposition, vary: "Accept" },
    },
  );
}

type ExportOfRecords<T> = Omit<Export<T>, "pages"> & { readonly records: readonly T[] };

/** Returns records that are already in memory, as JSON or as the export type that `Accept` prefers. */
export function negotiated<T extends object>(
  request: RequestInfo,
  body: object,
  { records, ...rest }: ExportOfRecords<T>,
): Reply {
  const type = requestedExport(request);
  return type === undefined ? negotiatedJson(body) : exportReply(type, request, { ...rest, pages: onlyPage(records) });
}

async function* onlyPage<T>(records: readonly T[]): AsyncGenerator<readonly T[]> {
  yield records;
}

async function* ndjsonOf(pages: AsyncIterable<readonly object[]>): AsyncGenerator<string> {
  for await (const page of pages)
    if (page.length > 0) yield page.map((record) => `${JSON.stringify(record)}\n`).join("");
}

async function* csvOf<T>(columns: readonly Column<T>[], pages: AsyncIterable<readonly T[]>): AsyncGenerator<string> {
  yield csvLine(columns.map(({ name }) => name));
  for await (const page of pages)
    if (page.length > 0) yield page.map((record) => csvLine(columns.map(({ value }) => value(record)))).join("");
}
