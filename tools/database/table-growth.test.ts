import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";

const ROOT = join(import.meta.dirname, "../..");
const SCHEMAS = join(import.meta.dirname, "schemas");
const PAGE = "docs/operations/table-growth.md";
/** The entry applies to each service that has the table. */
const EVERY = "every";

/** The tables of each service, without partitions. drift.test.ts compares these files with the migrations. */
const services: ReadonlyMap<string, readonly string[]> = new Map(
  readdirSync(SCHEMAS).map((file) => {
    const text = readFileSync(join(SCHEMAS, file), "utf8");
    const partitions = new Set(Array.from(text.matchAll(/^table (\S+) of /gm), ([, name]) => name!));
    const names = new Set(Array.from(text.matchAll(/^table (\S+)/gm), ([, name]) => name!));
    return [
      file.replace(/\.txt$/, ""),
      [...names].filter((name) => !partitions.has(name)).map((name) => name.replace(/^public\./, "")),
    ];
  }),
);

const entries = readFileSync(join(ROOT, PAGE), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .slice(2)
  .map((line) => line.split("|").slice(1, -1))
  .map(([service = "", tables = "", rows = "", removed = ""]) => ({
    service: service.trim(),
    tables: Array.from(tables.matchAll(/`([^`]+)`/g), ([, name]) => name!),
    rows: rows.trim(),
    removed: removed.trim(),
  }));

test.each([...services])(`each table of %s has one entry in ${PAGE}`, (service, tables) => {
  const listed = entries.flatMap((entry) =>
    entry.service === service
      ? entry.tables
      : entry.service === EVERY
        ? entry.tables.filter((table) => tables.includes(table))
        : [],
  );
  expect(tables.length).toBeGreaterThan(5);
  expect(listed.toSorted()).toEqual(tables.toSorted());
});

test(`${PAGE} names services that exist, what each table grows with, and what removes its rows`, () => {
  expect(entries.map(({ service }) => service).filter((name) => name !== EVERY && !services.has(name))).toEqual([]);
  const known = new Set([...services.values()].flat());
  expect(entries.flatMap(({ tables }) => tables).filter((name) => !known.has(name))).toEqual([]);
  expect(entries.filter(({ tables, rows, removed }) => tables.length === 0 || !rows || !removed)).toEqual([]);
});

test(`${PAGE} names settings that exist`, () => {
  const settings = new Set(entries.flatMap(({ removed }) => removed.match(/MILLWRIGHT_[A-Z_]+/g) ?? []));
  const documented = readFileSync(join(ROOT, "docs/operations/configuration.md"), "utf8");
  expect(settings.size).toBeGreaterThan(0);
  expect([...settings].filter((name) => !documented.includes(`\`${name}\``))).toEqual([]);
});
