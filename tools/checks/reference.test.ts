// The permissions page names every permission with its roles, as the code has them.
import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { VERBS } from "@millwright/caller";

const root = new URL("../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");

test("docs/reference/permissions.md lists every permission once", () => {
  const listed = [...read("docs/reference/permissions.md").matchAll(/^\| `([a-z.]+)`/gm)].map(([, verb]) => verb);
  expect(new Set(listed)).toEqual(new Set(VERBS));
  expect(listed).toHaveLength(VERBS.length);
});

/** Limits of the page with the constant that sets each. */
const LIMITS: readonly (readonly [row: string, value: string, file: string, constant: string])[] = [
  ["JSON body of a request", "1 MiB", "apps/gateway/src/rest/read-request.ts", "BODY_BYTES_MAX = 1024 * 1024;"],
  ["depth of a JSON body", "100", "apps/gateway/src/rest/read-request.ts", "JSON_DEPTH_MAX = 100;"],
  [
    "`Idempotency-Key`",
    "1 to 255",
    "apps/gateway/src/rest/read-request.ts",
    "must be 1 to 255 visible ASCII characters",
  ],
  ["prompt of a run", "1 MiB", "libs/errors/src/run-text.ts", "RUN_TEXT_BYTES_MAX = 1024 * 1024;"],
  ["configuration of a run", "128 KiB", "libs/errors/src/run-text.ts", "RUN_CONFIG_BYTES_MAX = 128 * 1024;"],
  [
    "body of a delivery to a webhook",
    "256 KiB",
    "apps/webhook-ingress/src/domain/limits.ts",
    "BODY_BYTES_MAX = 256 * 1024;",
  ],
  ["deliveries of a webhook", "60", "apps/webhook-ingress/src/domain/limits.ts", "DELIVERIES_PER_WINDOW = 60;"],
  ["failed authentications", "10", "apps/webhook-ingress/src/domain/limits.ts", "FAILURES_PER_ADDRESS = 10;"],
  ["delivery log", "7 days", "apps/webhook-ingress/src/domain/limits.ts", "RETENTION_DAYS = 7;"],
  ["automations of a factory", "200", "apps/factories/src/domain/automation.ts", "AUTOMATIONS_PER_FACTORY_MAX = 200;"],
  ["tracked branches", "50", "apps/factories/src/domain/branch.ts", "BRANCHES_MAX = 50;"],
  ["webhooks of a factory", "20", "libs/definition/src/rules.ts", "WEBHOOKS_MAX = 20;"],
  [
    "concurrent runs of a team, agent or factory",
    "100 each",
    "apps/orchestrator/src/compose.ts",
    "CAPACITY_DEFAULTS = { team: 100, agent: 100, factory: 100 };",
  ],
  ["MCP servers of a run", "20,", "apps/orchestrator/src/catalog/domain/mcp-servers.ts", "SERVERS_MAX = 20;"],
  ["tools of MCP servers", "200 in all", "apps/worker/src/mcp/mcp-servers.ts", "TOOLS_ALL_MAX = 200;"],
  ["trials of a benchmark run", "10,000", "apps/scoring/src/domain/benchmark-run.ts", "TRIALS_MAX = 10_000;"],
  ["files of a definition", "2,000", "libs/definition/src/tree.ts", "filesMax: 2_000,"],
  [
    "one file or pack of a git fetch",
    "512 MiB",
    "apps/factories/src/compose.ts",
    "GIT_FILE_BYTES_MAX = 512 * 1024 * 1024;",
  ],
  ["runs ", "1 to 500 | 20 ", "apps/gateway/src/routes/runs/runs.ts", "limit: pageLimit(20, 500)"],
  ["events of a run,", "1 to 500 | 100 ", "apps/gateway/src/routes/runs/team-events.ts", "limit: pageLimit(100, 500)"],
  [
    "slots of a schedule",
    "1 to 500 | 50 ",
    "apps/gateway/src/routes/triggers/schedules.ts",
    "limit: pageLimit(50, 500)",
  ],
  ["periods of a metric series", "365", "libs/periods/src/periods.ts", "PERIODS_MAX = 365;"],
  ["metrics and costs", "60", "apps/gateway/src/domain/metrics-limit.ts", "METRICS_REQUESTS_PER_WINDOW = 60;"],
];

test.each(LIMITS)("docs/reference/limits.md states the limit of the code: %s", (row, value, file, constant) => {
  const line = read("docs/reference/limits.md")
    .split("\n")
    .find((text) => text.startsWith(`| ${row}`));
  expect(line).toContain(value);
  expect(read(file)).toContain(constant);
});
