import { readFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { TraceCollector } from "@millwright/testing";
import { Platform } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { TestWorker } from "./support/test-worker.ts";
import { script, startRun, succeeded } from "./support/runs.ts";
import { operationsOf } from "./support/samples.ts";
import { aFactory, aTeam, definitionFiles } from "./support/resources.ts";

let collector: TraceCollector;
let platform: Platform;
let api: Client;
beforeAll(async () => {
  collector = await TraceCollector.start();
  platform = await Platform.start({ env: collector.environment });
  api = await connect(platform);
});
afterAll(async () => {
  await platform?.remove();
  await collector?.stop();
});

type Metrics = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/** Returns the names of the platform's own metrics with the values of each label. */
async function scrape(): Promise<Metrics> {
  const text = await (
    await fetch(`${platform.url}/metrics`, { headers: { authorization: `Bearer ${api.key}` } })
  ).text();
  const metrics = new Map<string, Map<string, Set<string>>>();
  for (const [, name] of text.matchAll(/^# TYPE (millwright_\w+) /gm)) metrics.set(name!, new Map());
  for (const [, series, labels] of text.matchAll(/^(millwright_\w+)\{(.*)\} \S+$/gm)) {
    const metric = metrics.get(series!) ?? metrics.get(series!.replace(/_(?:bucket|sum|count)$/, ""))!;
    for (const [, label, value] of labels!.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      metric.set(label!, (metric.get(label!) ?? new Set()).add(value!));
  }
  return metrics;
}

/** Calls every operation with new ids, names and words. Returns them. */
async function walk(): Promise<string[]> {
  const word = () => `w${randomUUID().replaceAll("-", "")}`;
  const words = Array.from({ length: 6 }, word);
  const [team, workerId, unknown, method, host, factory] = words as [string, string, string, string, string, string];
  for (const { method: verb, path } of operationsOf(api.document)) {
    const filled = path.replaceAll(/\{\w+\}/g, () => randomUUID());
    await fetch(`${api.url}/api/v1${filled}?${word()}=${word()}`, {
      method: verb,
      headers: { authorization: `Bearer ${api.key}`, "x-service-team-uid": randomUUID() },
    }).then((answer) => answer.body?.cancel());
  }
  for (const path of [
    `/${unknown}`,
    `/api/v1/${unknown}/${unknown}`,
    `/blobs/${unknown}`,
    `/rpc/millwright.worker.v1.WorkerService/${unknown}`,
    `/rpc/${unknown}/Lease`,
    `/runs/${randomUUID()}`,
  ]) {
    for (const verb of ["GET", "POST", "PROPFIND"])
      await fetch(`${api.url}${path}`, { method: verb, headers: { "x-request-id": word() } }).then((answer) =>
        answer.body?.cancel(),
      );
  }
  const own = await aTeam(api, team);
  await TestWorker.register(own, workerId);
  await aFactory(api, definitionFiles(script("say: x")), { name: factory });
  await startRun(own, script("say: x"), { title: method, config: { worker_host: host } });
  await succeeded(api, await startRun(api, script("say: x"), { title: word() }));
  return words;
}

/** Labels whose values are listed in a program or contract; a second walk may add values to them. */
const LISTED = new Set(["status", "outcome", "state", "reason", "phase", "kind", "le", "method"]);

test("labels of metrics do not grow with requests: no id, path, name or text of a caller becomes a label", async () => {
  const words = await walk();
  await scrape(); // A scrape is itself a request, which is counted after its response.
  const first = await scrape();
  words.push(...(await walk()));
  const second = await scrape();
  expect([...second.keys()].toSorted()).toEqual([...first.keys()].toSorted());
  for (const method of second.get("millwright_rpc_requests_total")!.get("method")!)
    expect(method).toMatch(/^(millwright|grpc)\.[\w.]+\/[A-Z]\w+$/);
  for (const [name, labels] of second) {
    for (const [label, values] of labels) {
      const before = first.get(name)?.get(label) ?? new Set();
      const added = [...values].filter((value) => !before.has(value));
      expect([name, label, LISTED.has(label) ? added.slice(3) : added]).toEqual([name, label, []]);
      for (const value of values)
        expect([name, label, value]).toEqual([
          name,
          label,
          expect.not.stringMatching(new RegExp(`[0-9a-f]{8}-[0-9a-f]{4}-|${words.join("|")}`)),
        ]);
    }
  }
});

const fileAt = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8");

/** Returns the metrics of a query and the labels that it filters by. */
function asked(query: string): { name: string; labels: string[] }[] {
  return [...query.matchAll(/\b(millwright_\w+)(?:\{([^}]*)\})?/g)].map(([, name, picked = ""]) => ({
    name: name!.replace(/_(?:bucket|sum|count)$/, ""),
    labels: [...picked.matchAll(/(\w+)\s*[=!]/g)].map(([, label]) => label!),
  }));
}

test("the documentation lists every metric, and the documentation, alerts and dashboard refer only to existing metrics and labels", async () => {
  const labelNames = new Map([...(await scrape())].map(([name]) => [name, new Set<string>()]));
  const table = [
    ...fileAt("docs/operations/observability.md").matchAll(/^\| (`millwright_[^|]*) \| ([^|]*)\|/gm),
  ].flatMap(([, names, labels]) =>
    [...names!.matchAll(/millwright_\w+/g)].map(([name]) => ({
      name,
      labels: [...labels!.replaceAll(/\([^)]*\)/g, "").matchAll(/`(\w+)`/g)].map(([, label]) => label!),
    })),
  );
  expect(table.map(({ name }) => name).toSorted()).toEqual([...labelNames.keys()].toSorted());
  for (const { name, labels } of table) for (const label of labels) labelNames.get(name)!.add(label);
  for (const [name, labels] of await scrape())
    for (const label of labels.keys())
      expect([name, label, label === "le" || labelNames.get(name)!.has(label)]).toEqual([name, label, true]);

  const rules = fileAt("deploy/prometheus/millwright.rules.yaml");
  const dashboard = JSON.parse(fileAt("deploy/grafana/millwright.json")) as {
    panels: { targets?: { expr: string }[] }[];
  };
  const queries = [
    ...[...rules.matchAll(/expr: (.*)/g)].map(([, query]) => query!),
    ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ];
  expect(queries.length).toBeGreaterThan(40);
  for (const { name, labels } of queries.flatMap(asked)) {
    expect([name, labelNames.has(name)]).toEqual([name, true]);
    for (const label of labels) expect([name, label, labelNames.get(name)!.has(label)]).toEqual([name, label, true]);
  }
});
