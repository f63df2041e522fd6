import { ScriptError } from "./script-error.ts";

/** The text of a fenced block. `line` is the 1-based number of its first content line. */
export type Fence = { readonly content: string; readonly line: number };

type Open = {
  readonly mark: string;
  readonly isScript: boolean;
  readonly indent: number;
  readonly line: number;
  readonly content: string[];
};

/**
 * Returns the `scripted` blocks of a text in order. Fences follow CommonMark: three or more backticks or tildes, closed
 * by at least as many. A block with an outer fence of four can therefore contain other blocks. Throws `ScriptError` if
 * a block is not closed.
 */
export function scriptedFences(text: string): Fence[] {
  const found: Fence[] = [];
  let open: Open | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (!open) {
      open = opening(line, index + 1);
    } else if (closes(line, open.mark)) {
      if (open.isScript) found.push({ content: open.content.join("\n"), line: open.line + 1 });
      open = undefined;
    } else {
      open.content.push(withoutIndent(line, open.indent));
    }
  }
  if (open?.isScript) throw new ScriptError(open.line, 1, "the scripted block is not closed");
  return found;
}

/** Returns the text without its `scripted` blocks, for AI models. */
export function withoutScripts(text: string): string {
  const lines: string[] = [];
  let open: Open | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const closed = open !== undefined && closes(line, open.mark);
    if (!open) open = opening(line, index + 1);
    if (!open?.isScript) lines.push(line);
    if (closed) open = undefined;
  }
  return lines.join("\n");
}

function opening(line: string, lineNumber: number): Open | undefined {
  const match = /^( {0,3})(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/.exec(line);
  if (!match) return undefined;
  const [, indent = "", mark = "", info = ""] = match;
  return { mark, isScript: info === "scripted", indent: indent.length, line: lineNumber, content: [] };
}

function closes(line: string, mark: string): boolean {
  const match = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1];
  return match !== undefined && match.length >= mark.length && match[0] === mark[0];
}

const withoutIndent = (line: string, indent: number): string =>
  line.slice(Math.min(indent, line.length - line.trimStart().length));
