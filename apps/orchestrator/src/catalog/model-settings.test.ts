import { expect, test } from "@jest/globals";
import { loadConfig } from "../config.ts";
import { MODEL_PROVIDERS } from "./domain/model-providers.ts";
import { modelSettings, platformProviders } from "./model-settings.ts";

const KEY = Buffer.alloc(32).toString("base64");
const NEEDED = {
  DATABASE_URL: "postgres://h/db",
  MILLWRIGHT_PUBLIC_URL: "http://mill.test",
  MASTER_KEY: KEY,
  SERVICE_KEY: KEY,
  BLOB_DIR: "/blobs",
  GATEWAY_URL: "http://g",
  GATEWAY_JWKS_URL: "http://g/jwks.json",
  FACTORIES_URL: "http://f",
  FACTORIES_JWKS_URL: "http://f/jwks.json",
  SCORING_URL: "http://c",
  SCORING_JWKS_URL: "http://c/jwks.json",
  SCHEDULER_URL: "http://s",
  SCHEDULER_JWKS_URL: "http://s/jwks.json",
  METRICS_URL: "http://m",
  METRICS_JWKS_URL: "http://m/jwks.json",
};
const providersOf = (env: Record<string, string>) => platformProviders(loadConfig({ ...NEEDED, ...env }));

test("the service's own process reads every provider, and the limit of tokens", () => {
  expect([providersOf({}), loadConfig(NEEDED).runTokenLimit]).toEqual([[], 0]);
  expect(loadConfig({ ...NEEDED, MILLWRIGHT_RUN_TOKEN_LIMIT: "5000" }).runTokenLimit).toBe(5_000);
  const env = {
    ANTHROPIC_API_KEY: "a",
    OPENAI_API_KEY: "o",
    OPENAI_BASE_URL: "http://o/v1/",
    GOOGLE_API_KEY: "g",
    GOOGLE_BASE_URL: "http://g/v1",
    OPENAI_COMPATIBLE_BASE_URL: "http://own/v1",
    OPENAI_COMPATIBLE_MODELS: "one, two",
  };
  expect(providersOf(env)).toEqual([
    { provider: "anthropic", apiKey: "a", baseUrl: "" },
    { provider: "openai", apiKey: "o", baseUrl: "http://o/v1" },
    { provider: "google", apiKey: "g", baseUrl: "http://g/v1" },
    { provider: "openai-compatible", apiKey: "", baseUrl: "http://own/v1", models: ["one", "two"] },
  ]);
});

test("reads model aliases as pairs", () => {
  expect([
    loadConfig(NEEDED).modelAliases,
    loadConfig({ ...NEEDED, MILLWRIGHT_MODEL_ALIASES: " claude-5-opus-high=claude-opus-5-5, fast = openai/gpt-next ," })
      .modelAliases,
  ]).toEqual([{}, { "claude-5-opus-high": "claude-opus-5-5", fast: "openai/gpt-next" }]);
  for (const wrong of ["fast", "=x", "a=", "a=b=c"])
    expect(() => loadConfig({ ...NEEDED, MILLWRIGHT_MODEL_ALIASES: wrong })).toThrow(
      /MILLWRIGHT_MODEL_ALIASES must be/,
    );
});

test("a base URL without the required key configures no provider", () => {
  expect(providersOf({ ANTHROPIC_BASE_URL: "http://a", OPENAI_COMPATIBLE_API_KEY: "k" })).toEqual([]);
});

test("platform settings and team secrets have the same names", () => {
  const names = Object.values(modelSettings).map(({ name }) => name);
  for (const { keyName, urlName } of MODEL_PROVIDERS) expect(names).toEqual(expect.arrayContaining([keyName, urlName]));
});
