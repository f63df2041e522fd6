/**
 * The codes of the published format, and two extensions: FF_UNKNOWN_FILE (a file outside the layout), FF_NOT_SERVED
 * (a warning).
 */
export type DiagnosticCode =
  | "FF_PARSE_ERROR"
  | "FF_DUPLICATE_KEY"
  | "FF_FORBIDDEN_YAML"
  | "FF_UNKNOWN_FIELD"
  | "FF_MISSING_FIELD"
  | "FF_INVALID_TYPE"
  | "FF_INVALID_VALUE"
  | "FF_CONFLICTING_FIELDS"
  | "FF_INVALID_REFERENCE"
  | "FF_UNKNOWN_EVENT"
  | "FF_INVALID_FILTER"
  | "FF_INVALID_CRON"
  | "FF_DUPLICATE_NAME"
  | "FF_FOREMAN_COUNT"
  | "FF_MISSING_FILE"
  | "FF_UNKNOWN_FILE"
  | "FF_LIMIT_EXCEEDED"
  | "FF_UNSUPPORTED_VERSION"
  | "FF_NOT_SERVED";

/** A position in a file; both 1-based, columns in UTF-16 units as in editors. */
export type Place = { readonly line: number; readonly column: number };

/** A problem in a definition tree: an error blocks apply, a warning does not. */
export type Diagnostic = Place & {
  readonly path: string;
  readonly code: DiagnosticCode;
  readonly message: string;
  readonly severity: "error" | "warning";
};

/** The position of a problem without one, such as a missing file. */
export const START: Place = Object.freeze({ line: 1, column: 1 });

/** Maximum number of diagnostics: a file of 2 MiB could cause a million. */
const ERRORS_MAX = 1_000;

/** Collects the diagnostics of one tree. */
export class Problems {
  readonly #found: Diagnostic[] = [];
  #errors = 0;

  error(path: string, place: Place, code: DiagnosticCode, message: string): void {
    this.#errors += 1;
    if (this.#errors <= ERRORS_MAX)
      this.#found.push({ path, line: place.line, column: place.column, code, message, severity: "error" });
    if (this.#errors !== ERRORS_MAX + 1) return;
    const more = `The definition has more errors; the first ${ERRORS_MAX} are listed.`;
    this.#found.push({ path: "factory.yaml", ...START, code: "FF_LIMIT_EXCEEDED", message: more, severity: "error" });
  }

  warning(path: string, place: Place, code: DiagnosticCode, message: string): void {
    this.#found.push({ path, line: place.line, column: place.column, code, message, severity: "warning" });
  }

  get hasErrors(): boolean {
    return this.#errors > 0;
  }

  /**
   * Returns all diagnostics by path, line, column, then code and text: the order does not depend on the order of
   * discovery.
   */
  sorted(): Diagnostic[] {
    return this.#found.toSorted(byPosition);
  }
}

/** Orders diagnostics by path, line, column, code and text; texts by code unit. */
export const byPosition = (a: Diagnostic, b: Diagnostic): number =>
  compareText(a.path, b.path) ||
  a.line - b.line ||
  a.column - b.column ||
  compareText(a.code, b.code) ||
  compareText(a.message, b.message);

/** Compares by UTF-16 code unit, which is the same on every machine. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
