/** Matches texts that a spreadsheet would evaluate as a formula. Source: OWASP, "CSV Injection". */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * Returns one line of CSV (RFC 4180). Lists and objects are written as JSON. Texts that a spreadsheet would evaluate
 * get a leading apostrophe.
 */
export function csvLine(values: readonly unknown[]): string {
  return `${values.map(cell).join(",")}\r\n`;
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const shown = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}
