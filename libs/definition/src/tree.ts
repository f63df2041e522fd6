import { compareText, START, type Diagnostic, type DiagnosticCode, type Problems } from "./diagnostics.ts";
import { isDefinitionPath } from "./layout.ts";

/** One file of a definition tree. Bytes are decoded strictly as UTF-8; text is used unchanged. */
export type TreeFile = { readonly path: string; readonly content: string | Uint8Array };

/** Limits of a tree. */
export const TREE_LIMITS = Object.freeze({
  fileBytesMax: 2 * 1024 * 1024,
  filesMax: 2_000,
  treeBytesMax: 20 * 1024 * 1024,
});

/** A file of the tree as text, or the reason why it cannot be read. */
export type TextFile = { path: string; text: string } | { path: string; code: DiagnosticCode; fault: string };

/**
 * Returns the definition's files, by path, without files outside the layout. Reports the reason and returns undefined
 * if the tree exceeds its limits.
 */
export function readTree(files: readonly TreeFile[], problems: Problems): TextFile[] | undefined {
  const relevant = files.filter(({ path }) => isDefinitionPath(path) || !isPlainPath(path));
  const fault = treeFault(relevant.map(({ content }) => ({ bytes: byteLength(content) })));
  if (fault) {
    problems.error(fault.path, fault, fault.code, fault.message);
    return undefined;
  }
  const byPath = new Map<string, TextFile[]>();
  for (const { path, content } of relevant) byPath.set(path, [...(byPath.get(path) ?? []), readFile(path, content)]);
  return [...byPath.entries()]
    .toSorted(([a], [b]) => compareText(a, b))
    .map(([path, [first, ...more]]) =>
      first && more.length === 0
        ? first
        : { path, code: "FF_DUPLICATE_NAME", fault: "This path is given more than once." },
    );
}

/** Returns the fault of a tree as a whole, from the sizes of its files alone. */
export function treeFault(files: readonly { bytes: number }[]): Diagnostic | undefined {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const excess =
    files.length > TREE_LIMITS.filesMax
      ? `${TREE_LIMITS.filesMax} files; this one has ${files.length}`
      : bytes > TREE_LIMITS.treeBytesMax
        ? `${TREE_LIMITS.treeBytesMax} bytes; this one has ${bytes}`
        : undefined;
  const message = `A definition has at most ${excess}.`;
  return excess === undefined
    ? undefined
    : { path: "factory.yaml", ...START, code: "FF_LIMIT_EXCEEDED", message, severity: "error" };
}

function readFile(path: string, content: string | Uint8Array): TextFile {
  if (!isPlainPath(path))
    return {
      path,
      code: "FF_INVALID_VALUE",
      fault: "A path is relative, uses / and contains no empty, . or .. segment.",
    };
  if (byteLength(content) > TREE_LIMITS.fileBytesMax)
    return { path, code: "FF_LIMIT_EXCEEDED", fault: `A file has at most ${TREE_LIMITS.fileBytesMax} bytes.` };
  const text = textOf(content);
  return text === undefined || text.includes("\0")
    ? { path, code: "FF_PARSE_ERROR", fault: "The file is not UTF-8 text." }
    : { path, text };
}

/** Returns whether a path is relative and normalised, so that it is the same place inside the tree on every system. */
export const isPlainPath = (path: string): boolean =>
  path !== "" &&
  !/[\\\0]/.test(path) &&
  path.split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");

const byteLength = (content: string | Uint8Array): number =>
  typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;

/** Returns a file's text; undefined if its bytes are not UTF-8. */
export function textOf(content: TreeFile["content"]): string | undefined {
  try {
    return typeof content === "string" ? content : new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return undefined;
  }
}
