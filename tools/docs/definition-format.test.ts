import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { SCHEMA_DOCUMENTS } from "@millwright/definition";
import { definitionFormatPage, FILES } from "./definition-format.ts";

test("docs/reference/definition-format.md is current (write it with tools/docs/definition-format.ts)", async () => {
  const page = await readFile(new URL("../../docs/reference/definition-format.md", import.meta.url), "utf8");
  expect(page).toBe(definitionFormatPage());
});

test("the page has a section for every document", () => {
  const documents = Object.keys(FILES).map((name) => `${name}.schema.json`);
  expect(new Set(documents)).toEqual(new Set(Object.keys(SCHEMA_DOCUMENTS).filter((id) => !id.startsWith("common."))));
});

test("the page lists nested keys with their values", () => {
  const page = definitionFormatPage();
  expect(page).toContain("| **`repositories[].owner`** | text |");
  expect(page).toContain("| `mcpServers.*.warpId` | text |");
  expect(page).toContain("| **`secretName`** | text. A managed secret of the team |");
  expect(page).toContain("| **`agentDefaults`** | the keys of an [execution block]");
});
