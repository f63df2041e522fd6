import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "@jest/globals";
import { parse } from "yaml";
import { SERVICES, variablesOf } from "./chart-settings.ts";

const COMPOSE = resolve(import.meta.dirname, "../../deploy/compose");
const text = readFileSync(`${COMPOSE}/compose.yaml`, "utf8");
type Service = {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly mem_limit?: string;
};
const { services } = parse(text, { merge: true }) as { readonly services: Readonly<Record<string, Service>> };

test.each([...SERVICES, "worker"])(
  "gives %s each variable that it requires, and none that it does not read",
  (name) => {
    const known = variablesOf(name);
    const given = Object.keys(services[name]!.environment ?? {});
    const names = new Set([...known.map((variable) => variable.name), "HOME"]);
    expect(given.filter((variable) => !names.has(variable))).toEqual([]);
    const required = known.filter(({ isRequired }) => isRequired).map((variable) => variable.name);
    expect(required.filter((variable) => !given.includes(variable))).toEqual([]);
  },
);

test.each(SERVICES)("starts %s with its own program and database", (name) => {
  expect(services[name]!.command).toEqual(["node", `apps/${name}/dist/main.js`]);
  expect(services[name]!.environment!["DATABASE_URL"]).toMatch(new RegExp(`/millwright_${name}$`));
});

test("pins each image, and limits the memory of each container", () => {
  for (const [name, { image, mem_limit: limit }] of Object.entries(services)) {
    expect([name, image]).toEqual([name, expect.stringMatching(/:[\w.${}:-]*\d+\.\d+/)]);
    expect([name, limit]).toEqual([name, expect.stringMatching(/^\d+[mg]$/)]);
  }
});

test("create-keys.sh writes each variable without a default that the file needs", () => {
  const written = execFileSync(`${COMPOSE}/create-keys.sh`, { encoding: "utf8" })
    .split("\n")
    .map((line) => line.split("=")[0]);
  const needed = [...text.matchAll(/\$\{(\w+)(?::\?[^}]*)?\}/g)].map(([, name]) => name);
  expect(needed.length).toBeGreaterThan(10);
  expect(needed.filter((name) => !written.includes(name))).toEqual([]);
});

test.each([".gitignore", ".dockerignore"])("%s excludes the file with the keys", (name) => {
  const lines = readFileSync(resolve(COMPOSE, "../..", name), "utf8").split("\n");
  expect(lines.map((line) => line.replace(/^\*\*\//, ""))).toContain(".env");
});
