/** A script that cannot be run, with its place: 1-based line and column of the text that holds the block. */
export class ScriptError extends Error {
  readonly line: number;
  readonly column: number;
  constructor(line: number, column: number, message: string) {
    super(message);
    this.name = "ScriptError";
    this.line = line;
    this.column = column;
  }
}
