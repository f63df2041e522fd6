import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Deployment } from "../src/index.ts";
import { connect, type Client } from "./support/client.ts";
import { SLOW_MS, startPlatform } from "./support/deployment.ts";
import { teamOf } from "./support/world.ts";

const EXAMPLES = join(import.meta.dirname, "../../../examples/factories");
const names = readdirSync(EXAMPLES).filter((name) => statSync(join(EXAMPLES, name)).isDirectory());

let platform: Deployment;
let api: Client;
beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
  for (const name of ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "STAGING_PASSWORD", "ALERTS_WEBHOOK_SECRET"]) await api.put(`/team/${await teamOf(api)}/secrets/${name}`, { value: "an-example" });
}, SLOW_MS);
afterAll(() => platform?.remove());

const filesOf = (name: string) =>
  readdirSync(join(EXAMPLES, name), { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join(EXAMPLES, name, path)).isFile())
    .map((path) => ({ path, content: readFileSync(join(EXAMPLES, name, path), "utf8") }));

test("there is one for each of the seven situations", () => {
  expect(names.toSorted()).toEqual(["common-automations", "full-lifecycle", "harness-per-agent", "review-only", "self-hosted-worker", "single-repo", "ui-verification"]);
});

test.each(names)("%s applies as it stands, a second time without any change, and its factory takes work", async (name) => {
  const { uid } = await api.post("/factory", { name });
  await api.put(`/factory/${uid}/source`, { files: filesOf(name) });
  const { source, plan } = await api.post(`/factory/${uid}/source/apply`);
  expect([source.state, source.diagnostics.filter(({ severity }: any) => severity === "error")]).toEqual(["APPLIED", []]);
  const created = plan.filter(({ action }: any) => action === "create").map(({ kind, name: of }: any) => `${kind} ${of}`);
  const told = filesOf(name).flatMap(({ path }) => {
    const [, kind, of] = /^(agents|automations|scorers|benchmarks)\/([^/]+)\/[^/]+$/.exec(path) ?? /^(webhooks|runners)\/(.+)\.yaml$/.exec(path) ?? [];
    return kind ? [`${kind.slice(0, -1)} ${of}`] : [];
  });
  expect(created).toEqual(expect.arrayContaining(told));
  const again = await api.post(`/factory/${uid}/source/plan`);
  expect(again.plan.filter(({ action }: any) => action !== "unchanged")).toEqual([]);
  expect((await api.post(`/factory/${uid}/runs`, { prompt: "Look around." })).state).toBe("QUEUED");
});
