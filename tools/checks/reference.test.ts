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

/** Limits of the page by the file that sets them: the row, the value and the constant. */
const LIMITS: Readonly<Record<string, readonly (readonly [row: string, value: string, constant: string])[]>> = {
  "apps/gateway/src/rest/read-request.ts": [
    ["JSON body of a request", "1 MiB", "BODY_BYTES_MAX = 1024 * 1024;"],
    ["depth of a JSON body", "100", "JSON_DEPTH_MAX = 100;"],
    ["`Idempotency-Key`", "1 to 255", "must be 1 to 255 visible ASCII characters"],
  ],
  "libs/errors/src/run-text.ts": [
    ["prompt of a run", "1 MiB", "RUN_TEXT_BYTES_MAX = 1024 * 1024;"],
    ["configuration of a run", "128 KiB", "RUN_CONFIG_BYTES_MAX = 128 * 1024;"],
  ],
  "apps/webhook-ingress/src/domain/limits.ts": [
    ["body of a delivery to a webhook", "256 KiB", "BODY_BYTES_MAX = 256 * 1024;"],
    ["deliveries of a webhook", "60", "DELIVERIES_PER_WINDOW = 60;"],
    ["failed authentications", "10", "FAILURES_PER_ADDRESS = 10;"],
    ["delivery log", "7 days", "RETENTION_DAYS = 7;"],
  ],
  "apps/factories/src/domain/automation.ts": [
    ["automations of a factory", "200", "AUTOMATIONS_PER_FACTORY_MAX = 200;"],
  ],
  "apps/factories/src/domain/branch.ts": [["tracked branches", "50", "BRANCHES_MAX = 50;"]],
  "libs/definition/src/rules.ts": [["webhooks of a factory", "20", "WEBHOOKS_MAX = 20;"]],
  "apps/orchestrator/src/compose.ts": [
    [
      "concurrent runs of a team, agent or factory",
      "100 each",
      "CAPACITY_DEFAULTS = { team: 100, agent: 100, factory: 100 };",
    ],
  ],
  "apps/orchestrator/src/catalog/domain/mcp-servers.ts": [["MCP servers of a run", "20,", "SERVERS_MAX = 20;"]],
  "apps/worker/src/mcp/mcp-servers.ts": [["tools of MCP servers", "200 in all", "TOOLS_ALL_MAX = 200;"]],
  "apps/scoring/src/domain/benchmark-run.ts": [["trials of a benchmark run", "10,000", "TRIALS_MAX = 10_000;"]],
  "libs/definition/src/tree.ts": [["files of a definition", "2,000", "filesMax: 2_000,"]],
  "apps/factories/src/compose.ts": [
    ["one file or pack of a git fetch", "512 MiB", "GIT_FILE_BYTES_MAX = 512 * 1024 * 1024;"],
  ],
  "apps/gateway/src/routes/runs/list-runs.ts": [["runs ", "1 to 500 | 20 ", "limit: pageLimit(20, 500)"]],
  "apps/gateway/src/routes/runs/team-events.ts": [
    ["events of a run,", "1 to 500 | 100 ", "limit: pageLimit(100, 500)"],
  ],
  "apps/gateway/src/routes/triggers/schedules.ts": [
    ["slots of a schedule", "1 to 500 | 50 ", "limit: pageLimit(50, 500)"],
  ],
  "libs/periods/src/periods.ts": [["periods of a metric series", "365", "PERIODS_MAX = 365;"]],
  "apps/gateway/src/domain/metrics-limit.ts": [["metrics and costs", "60", "METRICS_REQUESTS_PER_WINDOW = 60;"]],
};

test.each(Object.entries(LIMITS).flatMap(([file, limits]) => limits.map((limit) => [...limit, file] as const)))(
  "docs/reference/limits.md states the limit of the code: %s",
  (row, value, constant, file) => {
    const line = read("docs/reference/limits.md")
      .split("\n")
      .find((text) => text.startsWith(`| ${row}`));
    expect(line).toContain(value);
    expect(read(file)).toContain(constant);
  },
);
