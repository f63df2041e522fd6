import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import type { TeamUid } from "@millwright/ids";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { acceptExecution } from "./support/fake-worker.ts";

let p: CatalogPlatform;
let caller: Caller;
let teamUid: TeamUid;
beforeEach(async () => {
  p = await catalogPlatform({
    modelProviders: [{ provider: "openai", apiKey: "canary-platform", baseUrl: "https://platform.test/v1" }],
  });
  caller = aCaller();
  teamUid = caller.teams[0]!.teamUid;
});
afterEach(() => p.close());

const accepted = async (modelId: string, worker: { teamUid?: string } = {}) => {
  await p.run(caller, { config: { model_id: modelId } });
  return (await acceptExecution(p, await p.worker(worker))).assignment;
};

test("a team's managed secret enables its provider's models, for that team and in its definitions", async () => {
  const listed = async (ask = {}, who = caller) => p.catalogue.listModels(ask, p.as(who));
  expect((await listed()).defaultModelId).toBe("gpt-5.1");
  p.known.secrets.set("ANTHROPIC_API_KEY", "canary-team");
  expect((await listed({ teamUid })).defaultModelId).toBe("claude-opus-5-5");
  // A caller who is not a member gets the platform's models only.
  expect((await listed({ teamUid }, aCaller())).defaultModelId).toBe("gpt-5.1");
  expect(
    JSON.stringify(await listed(), (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
  ).not.toContain("canary");
});

test("the accepting worker receives the provider's access beside the secrets; the team's own takes precedence", async () => {
  const before = await accepted("gpt-5.1");
  expect(before.details).toMatchObject({
    secrets: {},
    providerCredentials: {
      provider: "openai",
      apiKey: "canary-platform",
      baseUrl: "https://platform.test/v1",
      operatorSet: true,
    },
  });
  p.known.secrets.set("OPENAI_API_KEY", "canary-team");
  expect((await accepted("openai/gpt-next")).details.providerCredentials).toEqual({
    provider: "openai",
    apiKey: "canary-team",
    baseUrl: "",
  });
  expect((await accepted("scripted")).details.providerCredentials).toBeUndefined();
});

test("the platform's key is sent to no team's worker, the team's own is", async () => {
  expect((await accepted("gpt-5.1", { teamUid })).details.providerCredentials).toBeUndefined();
  p.known.secrets.set("OPENAI_API_KEY", "canary-team");
  expect((await accepted("gpt-5.1", { teamUid })).details.providerCredentials).toMatchObject({ apiKey: "canary-team" });
});

test("the access is not stored", async () => {
  p.known.secrets.set("OPENAI_API_KEY", "canary-team");
  await accepted("gpt-5.1");
  const { sql } = p.database;
  const { rows: tables } = await sql.query<{ name: string }>(
    "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')",
  );
  const dumps = await Promise.all(
    tables.map(({ name }) => sql.query<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM ${name} t`)),
  );
  const dump = dumps.flatMap(({ rows }) => rows.map(({ row }) => row)).join("\n");
  expect(dump).toContain("gpt-5.1");
  expect(dump).not.toContain("canary");
});

test("a model of an unconfigured provider is refused, with the remedy", async () => {
  await expect(accepted("google/gemini-next")).rejects.toEqual(domainError({ reason: "model_disabled" }));
  await expect(accepted("google/gemini-next")).rejects.toThrow("GOOGLE_API_KEY");
});
