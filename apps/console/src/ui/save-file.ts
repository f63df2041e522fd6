/** Characters that a spreadsheet evaluates as a formula at the start of a cell. */
const FORMULA = /^[=+\-@\t\r]/;

/** Returns rows as CSV (RFC 4180). Texts that a spreadsheet would evaluate as a formula begin with an apostrophe. */
export const csvOf = (rows: readonly (readonly (string | number | null)[])[]): string =>
  rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

function csvCell(value: string | number | null): string {
  if (typeof value !== "string") return value === null ? "" : `${value}`;
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Saves content as a file of the browser's download folder. */
export function saveFile(name: string, content: BlobPart, type = "text/csv;charset=utf-8"): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  // the browser reads the URL after the click
  setTimeout(() => URL.revokeObjectURL(url));
}
