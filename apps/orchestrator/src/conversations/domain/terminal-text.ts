/**
 * Returns what a terminal shows after all output was written: colours and other control sequences are removed, `\r` and
 * `\b` move the cursor back within the line, and "erase line" clears what follows it. A progress bar is thus shown in
 * its last state, and no control sequence can act on the terminal of a reader.
 */
export function terminalText(written: string): string {
  return written.split("\n").map(shownLine).join("\n");
}

/**
 * Matches OSC, DCS and similar sequences with their texts, CSI with its parameters, other escapes, and control
 * characters; C1 forms too.
 */
const CONTROLS =
  // oxlint-disable-next-line no-control-regex -- the pattern matches control characters
  /(?:\u001b\]|\u009d)[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|(?:\u001b[PX^_]|[\u0090\u0098\u009e\u009f])[^\u001b\u009c]*(?:\u001b\\|\u009c)?|(?:\u001b\[|\u009b)(?<parameters>[0-?]*)[ -/]*(?<final>[@-~])?|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu;

function shownLine(line: string): string {
  if (line.search(CONTROLS) < 0) return line;
  const cells: string[] = [];
  let column = 0;
  let from = 0;
  const write = (text: string): void => {
    for (const cell of text) cells[column++] = cell;
  };
  for (const match of line.matchAll(CONTROLS)) {
    write(line.slice(from, match.index));
    from = match.index + match[0].length;
    const { parameters = "", final } = match.groups ?? {};
    if (match[0] === "\r") column = 0;
    else if (match[0] === "\b") column = Math.max(0, column - 1);
    else if (final === "K") erase(cells, column, parameters);
  }
  write(line.slice(from));
  return Array.from(cells, (cell) => cell ?? " ").join("");
}

function erase(cells: string[], column: number, parameters: string): void {
  if (parameters === "" || parameters === "0") cells.length = Math.min(cells.length, column);
  else if (parameters === "1") cells.fill(" ", 0, column);
  else if (parameters === "2") cells.length = 0;
}
