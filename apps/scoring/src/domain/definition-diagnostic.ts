/**
 * A problem in the files of a definition: an error, which blocks the apply, or a warning. `keys` is the path to the
 * value in the file.
 */
export type Diagnostic = {
  readonly path: string;
  readonly keys: string[];
  readonly code: string;
  readonly message: string;
  readonly severity: "error" | "warning";
};
