import { expect, test } from "@jest/globals";
import { gatewayWire } from "./gateway-wires.ts";

const BODY = { model: "m", tools: [{ name: "t" }] };

test.each([
  ["anthropic", "", "/v1/messages", "https://api.anthropic.com/v1/messages", "step"],
  ["anthropic", "http://proxy/v1/", "/v1/messages/count_tokens", "http://proxy/v1/messages/count_tokens", "count"],
  ["openai", "", "/v1/responses", "https://api.openai.com/v1/responses", "step"],
  ["openai", "http://proxy/openai/v1", "/v1/responses", "http://proxy/openai/v1/responses", "step"],
  ["openai-compatible", "http://host/api/v3/", "/v1/chat/completions", "http://host/api/v3/chat/completions", "step"],
  [
    "google",
    "",
    "/v1beta/models/m:streamGenerateContent",
    "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent",
    "step",
  ],
  [
    "google",
    "http://proxy/v1beta",
    "/v1beta/models/m:countTokens",
    "http://proxy/v1beta/models/m:countTokens",
    "count",
  ],
])("%s at %j: %s goes to %s", (provider, baseUrl, path, url, kind) => {
  const wire = gatewayWire(provider)!;
  expect([wire.url(baseUrl, path), wire.read(path, BODY)]).toEqual([url, { kind, modelId: "m" }]);
});

test.each([
  ["anthropic", "/v1/messages"],
  ["openai", "/v1/responses"],
  ["google", "/v1beta/models/m:generateContent"],
])("%s: a call without tools is no step", (provider, path) =>
  expect(["none", []].map((tools) => gatewayWire(provider)!.read(path, { model: "m", tools })?.kind)).toEqual([
    "side",
    "side",
  ]),
);

test.each([
  ["anthropic", "/v1/models"],
  ["anthropic", "/v1/responses"],
  ["openai", "/v1/files"],
  ["openai", "/v1/responses/../files"],
  ["openai-compatible", "/v1/embeddings"],
  ["google", "/v1beta/models/m/x:generateContent"],
  ["google", "/v1beta/models/..:deleteEverything"],
])("%s serves no %s", (provider, path) => expect(gatewayWire(provider)!.read(path, BODY)).toBeUndefined());

test.each([
  ["anthropic", { max_tokens: 9 }, { max_tokens: 5 }],
  ["openai", { max_output_tokens: 9 }, { max_output_tokens: 5 }],
  ["openai-compatible", { max_tokens: 9 }, { max_tokens: 5 }],
  [
    "google",
    { generationConfig: { topK: 1, maxOutputTokens: 9 } },
    { generationConfig: { topK: 1, maxOutputTokens: 5 } },
  ],
])("%s is asked for shorter answers", (provider, body, shorter) => {
  const wire = gatewayWire(provider)!;
  expect([wire.outputLimit(body), wire.limited(body, 5)]).toEqual([9, shorter]);
});

test("there is no other provider", () =>
  expect(["scripted", "toString", ""].map(gatewayWire)).toEqual([undefined, undefined, undefined]));
