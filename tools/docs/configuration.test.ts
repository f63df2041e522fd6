import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { configurationPage, VARIABLES } from "./configuration.ts";

test("docs/operations/configuration.md is current (write it with tools/docs/configuration.ts)", async () => {
  const page = await readFile(new URL("../../docs/operations/configuration.md", import.meta.url), "utf8");
  expect(page).toBe(configurationPage());
});

test.each(Object.entries(VARIABLES))("%s declares each variable once, with a full sentence", (_app, variables) => {
  const names = variables.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
  for (const { description } of variables) expect(description).toMatch(/^[^a-z].*\.$/);
});

test("values of keys, tokens and database addresses are hidden", () => {
  const named = Object.values(VARIABLES)
    .flat()
    .filter(({ name }) => /(?:_KEY|_TOKEN|DATABASE_URL|_HEADERS)$/.test(name));
  expect(named.filter(({ isSecret }) => !isSecret)).toEqual([]);
});
