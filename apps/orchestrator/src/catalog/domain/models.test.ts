import { describe, expect, test } from "@jest/globals";
import { credentialsFor, providerNamed } from "./model-providers.ts";
import { chooseModel, harnessModel, modelCatalogue } from "./models.ts";

describe("with no provider configured", () => {
  const catalogue = modelCatalogue([]);
  test("scripted is the default and the only model that can be used", () => {
    expect(catalogue.defaultModelId).toBe("scripted");
    expect(catalogue.models.filter((model) => !model.disabled).map((model) => model.id)).toEqual(["scripted"]);
  });
  test("every other model has the reason why it is disabled", () => {
    for (const model of catalogue.models.filter(({ id }) => id !== "scripted"))
      expect(model.disabled?.message).toMatch(/^No model provider for .+ is configured.*(?:_API_KEY|_BASE_URL)/);
  });
});

const platform = (provider: string, models: string[] = []) => [{ provider, apiKey: "k", baseUrl: "", models }];
const usable = (catalogue: ReturnType<typeof modelCatalogue>) =>
  catalogue.models.filter((model) => !model.disabled).map(({ id }) => id);

describe("with a provider", () => {
  test.each([
    ["of the platform", modelCatalogue(platform("openai"))],
    ["of the team", modelCatalogue([], ["OPENAI_API_KEY", "OPENAI_BASE_URL"])],
  ])("%s, its first model is the default and scripted stays", (_of, catalogue) => {
    expect(usable(catalogue)).toEqual(["gpt-5.1", "gpt-5-mini", "scripted"]);
    expect(chooseModel(catalogue, "auto")).toMatchObject({ id: "gpt-5.1", provider: "openai" });
  });
  test("accepts any model with the provider's prefix, and resolves a listed one to its listed id", () => {
    const catalogue = modelCatalogue(platform("openai"));
    expect(chooseModel(catalogue, "openai/gpt-next")).toMatchObject({ id: "openai/gpt-next", provider: "openai" });
    expect(chooseModel(catalogue, "openai/gpt-5.1").id).toBe("gpt-5.1");
    expect(() => chooseModel(catalogue, "anthropic/claude-next")).toThrow(
      expect.objectContaining({ reason: "model_disabled" }),
    );
    expect(() => chooseModel(catalogue, "openai/")).toThrow(expect.objectContaining({ reason: "model_unknown" }));
  });
  test("a compatible server needs an address, and offers the models that its operator names", () => {
    expect(usable(modelCatalogue([], ["OPENAI_COMPATIBLE_API_KEY"]))).toEqual(["scripted"]);
    expect(
      chooseModel(modelCatalogue([], ["OPENAI_COMPATIBLE_BASE_URL"]), "openai-compatible/meta/llama").provider,
    ).toBe("openai-compatible");
    expect(modelCatalogue(platform("openai-compatible", ["qwen"])).defaultModelId).toBe("openai-compatible/qwen");
  });
  test("a compatible server of the team is the default with its address alone, and does not offer the models of the operator's server", () => {
    for (const operators of [[], platform("openai-compatible", ["qwen"])]) {
      const catalogue = modelCatalogue(operators, ["OPENAI_COMPATIBLE_BASE_URL"]);
      expect([catalogue.defaultModelId, usable(catalogue)]).toEqual([
        "openai-compatible/default",
        ["openai-compatible/default", "scripted"],
      ]);
      expect(harnessModel(catalogue, { type: "opencode" })).toEqual({ id: "default", provider: "openai-compatible" });
    }
  });
});

describe("another name", () => {
  const catalogue = modelCatalogue(platform("openai"), [], {
    "gpt-6-high": "gpt-5-mini",
    "auto-best": "openai/gpt-next",
    ours: "auto",
    gone: "nothing",
  });
  test.each([
    ["gpt-6-high", "gpt-5-mini"],
    ["auto-best", "openai/gpt-next"],
    ["ours", "gpt-5.1"],
    ["auto-anything", "gpt-5.1"],
  ])("%s is %s", (name, id) => expect(chooseModel(catalogue, name).id).toBe(id));
  test.each([["gone"], ["automatic"], ["toString"]])("%s is none", (name) =>
    expect(() => chooseModel(catalogue, name)).toThrow(
      expect.objectContaining({ reason: "model_unknown", message: expect.stringContaining(name) }),
    ),
  );
});

test("a team's base URL never receives the platform's key", () => {
  const anthropic = providerNamed("anthropic")!;
  const own = [{ provider: "anthropic", apiKey: "platform", baseUrl: "https://platform.test" }];
  expect(credentialsFor(anthropic, { ANTHROPIC_API_KEY: "team" }, own)).toEqual({
    provider: "anthropic",
    apiKey: "team",
    baseUrl: "",
  });
  expect(credentialsFor(anthropic, { ANTHROPIC_BASE_URL: "https://team.test" }, own)).toEqual({
    ...own[0],
    operatorSet: true,
  });
  expect(credentialsFor(anthropic, {}, [])).toBeUndefined();
});

test.each([
  [undefined, "scripted"],
  ["auto", "scripted"],
  ["scripted", "scripted"],
])("asked for %s: %s", (asked, id) => expect(chooseModel(modelCatalogue([]), asked).id).toBe(id));

test.each([
  ["no-such-model", "model_unknown"],
  ["claude-sonnet-4-5", "model_disabled"],
])("asked for %s: %s", (asked, reason) =>
  expect(() => chooseModel(modelCatalogue([]), asked)).toThrow(
    expect.objectContaining({ reason, kind: "invalid_argument" }),
  ),
);

describe("the model of a third-party harness", () => {
  const catalogue = modelCatalogue(platform("openai", ["own"]));
  test.each([
    ["claude", undefined, { id: "", provider: "anthropic" }],
    ["codex", "anything", { id: "anything", provider: "openai" }],
    ["gemini", "gemini-3-pro", { id: "gemini-3-pro", provider: "google" }],
    ["opencode", undefined, { id: "gpt-5.1", provider: "openai" }],
    ["opencode", "auto", { id: "gpt-5.1", provider: "openai" }],
    // its key may be named in the harness's configuration
    ["opencode", "claude-sonnet-4-5", { id: "claude-sonnet-4-5", provider: "anthropic" }],
    ["opencode", "anthropic/claude-next", { id: "claude-next", provider: "anthropic" }],
    ["opencode", "openai-compatible/meta/llama", { id: "meta/llama", provider: "openai-compatible" }],
    ["opencode", "openai/own", { id: "own", provider: "openai" }],
  ] as const)("%s, asked for %s: %o", (type, modelId, model) =>
    expect(harnessModel(catalogue, { type, ...(modelId === undefined ? {} : { modelId }) })).toEqual(model),
  );

  test.each([["nonsense"], ["scripted"], ["openai/"]])("one that works with any provider cannot have %s", (modelId) =>
    expect(() => harnessModel(catalogue, { type: "opencode", modelId })).toThrow(
      expect.objectContaining({ reason: "model_unknown" }),
    ),
  );
  test("rejects the default model if no provider is configured", () =>
    expect(() => harnessModel(modelCatalogue([]), { type: "opencode" })).toThrow(
      expect.objectContaining({ reason: "model_unknown", message: expect.stringContaining("<provider>/<model>") }),
    ));
});
