import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { parse } from "yaml";

const ROOT = join(import.meta.dirname, "../..");
const fileAt = (path: string): string => readFileSync(join(ROOT, path), "utf8");

type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
};
const { groups } = parse(fileAt("deploy/prometheus/millwright.rules.yaml")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

/** Returns the words of the commands that the files of a directory declare. */
const wordsIn = (directory: string): string[] =>
  readdirSync(join(ROOT, directory)).flatMap((file) =>
    [...fileAt(join(directory, file)).matchAll(/words: "([^"]+)"/g)].map(([, words]) => words!),
  );

/** The sections of the runbooks by title. */
const sections = new Map(
  fileAt("docs/operations/runbooks.md")
    .split(/^## /m)
    .slice(1)
    .map((text) => [text.split("\n")[0]!, text] as const),
);

test("every alert names its section of the runbooks, and every section has an alert", () => {
  expect([...sections.keys()]).toEqual(rules.map(({ alert }) => alert));
  for (const { alert, annotations } of rules)
    expect([alert, annotations.runbook]).toEqual([alert, `docs/operations/runbooks.md#${alert.toLowerCase()}`]);
});

test.each(rules)("$alert asks for documented metrics and has a severity and commands", ({ alert, expr, labels }) => {
  const documented = new Set(
    [...fileAt("docs/operations/observability.md").matchAll(/^\| (`millwright_[^|]*) \|/gm)].flatMap(([, names]) =>
      [...names!.matchAll(/millwright_\w+/g)].map(([name]) => name),
    ),
  );
  const named = [...expr.matchAll(/millwright_\w+/g)].map(([name]) => name.replace(/_(?:bucket|sum|count)$/, ""));
  expect(named).not.toEqual([]);
  expect(named.filter((name) => !documented.has(name))).toEqual([]);
  expect(["page", "warn"]).toContain(labels.severity);
  expect(sections.get(alert)).toMatch(/```sh\n.+\n```/s);
});

test("commands of the runbooks exist", () => {
  const text = [...sections.values()].join("\n");
  const admin = [...text.matchAll(/npx millwright-admin ([a-z-]+)/g)].map(([, word]) => word!);
  const known = wordsIn("apps/admin/src/commands");
  expect(admin.length).toBeGreaterThan(0);
  for (const word of admin) expect(known).toContainEqual(expect.stringMatching(new RegExp(`^${word}`)));
  const client = [...text.matchAll(/npx millwright ([a-z-]+ [a-z]+)/g)].map(([, words]) => words!);
  const help = wordsIn("apps/cli/src/commands");
  for (const words of client) expect(help).toContain(words);
});
