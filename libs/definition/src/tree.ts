import { compareText, START, type Diagnostic, type DiagnosticCode, type Problems } from "./diagnostics.ts";
import { isDefinitionPath } from "./layout.ts";

/** One file of a definition tree. Bytes are decoded as UTF-8 here, strictly; text is taken as it is. */
export type TreeFile = { readonly path: string; readonly content: string | Uint8Array };

/** Bounds of a tree: spec factory-files §2. */
export const TREE_LIMITS = Object.freeze({
  fileBytesMax: 2 * 1024 * 1024,
  filesMax: 2_000,
  treeBytesMax: 20 * 1024 * 1024,
});

/** A file of the tree as text, or why it cannot be read as one. */
export type TextFile = { path: string; text: string } | { path: string; code: DiagnosticCode; fault: string };

/**
 * The definition's files, by path; files outside the layout are left out. Gives undefined, with the reason reported,
 * when the tree as a whole is beyond its bounds.
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

/** What is wrong with a tree as a whole, known from the sizes of its files alone. */
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

/** Whether a path is relative and normal, so that it names one place inside the tree on every system. */
export const isPlainPath = (path: string): boolean =>
  path !== "" &&
  !/[\\\0]/.test(path) &&
  path.split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");

const byteLength = (content: string | Uint8Array): number =>
  typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;

/** A file's text; undefined when its bytes are no UTF-8. */
export function textOf(content: TreeFile["content"]): string | undefined {
  try {
    return typeof content === "string" ? content : new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return undefined;
  }
}
