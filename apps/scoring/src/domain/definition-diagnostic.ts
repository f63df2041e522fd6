/** Something wrong (error: blocks the apply) or doubtful (warning) in the files of a definition. `keys`: what leads to the value in the file. */
export type Diagnostic = {
  readonly path: string;
  readonly keys: string[];
  readonly code: string;
  readonly message: string;
  readonly severity: "error" | "warning";
};
