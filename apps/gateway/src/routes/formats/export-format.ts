/** Media types of exports, which clients name in `Accept`. */
export const EXPORT_TYPES = ["application/x-ndjson", "text/csv"] as const;
export type ExportType = (typeof EXPORT_TYPES)[number];

type Preference = { readonly type: string; readonly quality: number };

/**
 * Returns the export type that the client prefers to JSON, or undefined for JSON. Wildcards mean JSON. Among types with
 * the same quality, the first named is preferred. Source: RFC 9110 §12.5.1.
 */
export function exportTypeOf(accept: string | undefined): ExportType | undefined {
  const preferences = (accept ?? "")
    .split(",")
    .map(preferenceOf)
    .filter(({ quality }) => quality > 0);
  const named = preferences
    .filter(({ type }) => type === "application/json" || isExport(type))
    .toSorted((a, b) => b.quality - a.quality);
  const wildcard = Math.max(
    0,
    ...preferences.filter(({ type }) => type === "*/*" || type === "application/*").map(({ quality }) => quality),
  );
  const [first] = named;
  return first && first.quality >= wildcard && isExport(first.type) ? first.type : undefined;
}

const isExport = (type: string): type is ExportType => EXPORT_TYPES.includes(type as ExportType);

function preferenceOf(range: string): Preference {
  const [type = "", ...parameters] = range
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  const quality = parameters.find((parameter) => parameter.startsWith("q="));
  return { type, quality: quality === undefined ? 1 : Number(quality.slice(2)) || 0 };
}
