export const printLine = (line: string): void => void process.stdout.write(`${line}\n`);

/** Prints names and figures in two columns. */
export function printRows(rows: readonly (readonly [name: string, figure: string | number])[]): void {
  for (const [name, figure] of rows) printLine(`${name.padEnd(58)} ${figure}`);
}
