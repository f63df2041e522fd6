import { byPosition, parseDefinition, type Diagnostic, type TreeFile } from "../src/index.ts";

export type Expected = Pick<Diagnostic, "path" | "line" | "column" | "code">;

/**
 * Reads files with marked faults: `§CODE§` stands directly before the position of a diagnostic and is removed.
 * Positions are counted here, independently of the parser under test.
 */
export function unmark(marked: Readonly<Record<string, string>>): { files: TreeFile[]; expected: Expected[] } {
  const files: TreeFile[] = [];
  const expected: Expected[] = [];
  for (const [path, text] of Object.entries(marked)) {
    let content = "";
    for (const [index, part] of text.split("§").entries()) {
      if (index % 2 === 0) content += part;
      else
        expected.push({
          path,
          line: content.split("\n").length,
          column: content.length - content.lastIndexOf("\n"),
          code: part as Diagnostic["code"],
        });
    }
    files.push({ path, content });
  }
  return {
    files,
    expected: expected.toSorted((a, b) =>
      byPosition({ ...a, message: "", severity: "error" }, { ...b, message: "", severity: "error" }),
    ),
  };
}

/** Returns the errors that the parser finds, without their texts. */
export const errorsOf = (files: readonly TreeFile[]): Expected[] =>
  parseDefinition(files)
    .diagnostics.filter(({ severity }) => severity === "error")
    .map(({ path, line, column, code }) => ({ path, line, column, code }));

/** The smallest valid definition; tests override files of it. */
export const VALID: Readonly<Record<string, string>> = {
  "factory.yaml":
    "schemaVersion: v1alpha1\nname: Sample\nrepositories:\n  - owner: acme\n    name: shop\nagentDefaults:\n  model: auto\n",
  "agents/foreman/agent.md": "---\nagentType: FOREMAN\n---\nPlan the work.\n",
};

export const filesOf = (tree: Readonly<Record<string, string>>): TreeFile[] =>
  Object.entries(tree).map(([path, content]) => ({ path, content }));
