/** An invalid script, with the 1-based line and column in the text that contains the block. */
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
