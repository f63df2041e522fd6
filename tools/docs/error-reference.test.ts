import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "@jest/globals";
import { errorReference } from "./error-reference.mjs";

test("docs/reference/errors.md is current (write it with tools/docs/error-reference.mjs)", async () => {
  const written = await readFile(new URL("../../docs/reference/errors.md", import.meta.url), "utf8");
  expect(written).toBe(errorReference());
});

const KINDS = `export const ERROR_KINDS = {
  invalid_argument: { connect: 3, status: 400, code: "invalid_request" },
  not_found: { connect: 5, status: 404, code: "resource_not_found" },
} as const;`;
const ERRORS = `import { ERROR_KINDS } from "./kinds.ts";
export class DomainError {}
export const notFound = (resource: string) =>
  new DomainError({ kind: "not_found", reason: \`\${resource}_not_found\`, message: \`No such \${resource}.\` });
export const invalidArgument = (reason: string, message: string) =>
  new DomainError({ kind: "invalid_argument", reason, message });
`;

/** Returns the rows of the table for a repository with one application file. */
function rowsFor(source: string): string[] {
  const root = mkdtempSync(join(tmpdir(), "errors-"));
  const files = {
    "package.json": "{}",
    "libs/errors/package.json": JSON.stringify({ name: "@millwright/errors" }),
    "libs/errors/src/kinds.ts": KINDS,
    "libs/errors/src/index.ts": ERRORS,
    "apps/shop/package.json": JSON.stringify({ name: "@millwright/shop" }),
    "apps/shop/src/order.ts": `import { invalidArgument, notFound } from "@millwright/errors";\n${source}`,
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return errorReference(root)
    .split("\n")
    .filter((line) => line.startsWith("| `"));
}

const SHOP = "[shop](../../apps/shop/src/order.ts)";

test.each([
  [
    "resolves constants and shows other values by name",
    "const LINES_MAX = 2 * 10;\nexport const f = (n: number) => { throw invalidArgument('too_long', `At most ${LINES_MAX} lines (got ${n}).`); };",
    [`| \`too_long\` | 400 | \`invalid_request\` | At most 20 lines (got {n}). | ${SHOP} |`],
  ],
  [
    "lists every call of a function that takes the message",
    "const invalid = (message: string) => invalidArgument('order_invalid', message);\nexport const f = () => [invalid('No lines.'), invalid('No price.')];",
    [
      `| \`order_invalid\` | 400 | \`invalid_request\` | No lines. | ${SHOP} |`,
      `| \`order_invalid\` | 400 | \`invalid_request\` | No price. | ${SHOP} |`,
    ],
  ],
  [
    "lists every alternative of a condition",
    "export const f = (isOld: boolean) => notFound(isOld ? 'order' : 'draft');",
    [
      `| \`draft_not_found\` | 404 | \`resource_not_found\` | No such draft. | ${SHOP} |`,
      `| \`order_not_found\` | 404 | \`resource_not_found\` | No such order. | ${SHOP} |`,
    ],
  ],
])("%s", (_behaviour, source, rows) => expect(rowsFor(source)).toEqual(rows));
