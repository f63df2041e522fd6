import type { JsonObject } from "@bufbuild/protobuf";
import { withAllAnswers } from "./gemini-contents.ts";
import { objectAt, textAt } from "../model/event-fields.ts";

/**
 * A request of a harness to its model. `step` offers tools to the model. `side` does not; it is for titles or
 * summaries, for example. `count` asks for the length of a prompt and is free of charge.
 */
export type WireCall = { readonly kind: "step" | "side" | "count"; readonly modelId: string };

/** A provider's API as the gateway serves and forwards it. */
export type GatewayWire = {
  /** Classifies a request by its path; undefined if a harness may not make it. */
  readonly read: (path: string, body: JsonObject) => WireCall | undefined;
  /** Returns the provider's URL for a path. */
  readonly url: (baseUrl: string, path: string) => string;
  readonly key: (apiKey: string) => Readonly<Record<string, string>>;
  /** Returns the requested output token limit. `limited` returns the request with a different limit. */
  readonly outputLimit: (body: JsonObject) => unknown;
  readonly limited: (body: JsonObject, tokens: number) => JsonObject;
  /** Returns the request in a form that the provider accepts, if a harness sends a form that it does not. */
  readonly repaired?: (body: JsonObject) => JsonObject;
  /**
   * Returns a response to a call of this path that ends the turn. It replaces the model's response or is appended to
   * the part already sent.
   */
  readonly ending?: (path: string) => GatewayEnding;
};

export type GatewayEnding = { readonly contentType: string; readonly body: string };

const bearer = (apiKey: string): Record<string, string> => (apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` });
const trimmed = (url: string): string => url.replace(/\/+$/, "");
const beneath = (prefix: string, base: string, path: string): string => base + path.slice(prefix.length);
const byField = (name: string): Pick<GatewayWire, "outputLimit" | "limited"> => ({
  outputLimit: (body) => body[name],
  limited: (body, tokens) => ({ ...body, [name]: tokens }),
});

const GOOGLE_CALL = /^\/v1beta\/models\/([^/:]+):(streamGenerateContent|generateContent|countTokens)$/;

const WIRES: Readonly<Record<string, GatewayWire>> = {
  anthropic: {
    read: (path, body) =>
      path === "/v1/messages"
        ? wireCallOf(body)
        : path === "/v1/messages/count_tokens"
          ? { ...wireCallOf(body), kind: "count" }
          : undefined,
    // Users usually configure this base URL without the version.
    url: (baseUrl, path) => trimmed(baseUrl || "https://api.anthropic.com").replace(/\/v1$/, "") + path,
    key: (apiKey) => ({ "x-api-key": apiKey }),
    ...byField("max_tokens"),
  },
  openai: {
    read: (path, body) => (path === "/v1/responses" ? wireCallOf(body) : undefined),
    url: (baseUrl, path) => beneath("/v1", trimmed(baseUrl || "https://api.openai.com/v1"), path),
    key: bearer,
    ...byField("max_output_tokens"),
  },
  "openai-compatible": {
    read: (path, body) => (path === "/v1/chat/completions" ? wireCallOf(body) : undefined),
    url: (baseUrl, path) => beneath("/v1", trimmed(baseUrl), path),
    key: bearer,
    ...byField("max_tokens"),
  },
  google: {
    read: (path, body) => {
      const [, modelId = "", method] = GOOGLE_CALL.exec(path) ?? [];
      return method === undefined ? undefined : { kind: method === "countTokens" ? "count" : kindOf(body), modelId };
    },
    url: (baseUrl, path) =>
      beneath("/v1beta", trimmed(baseUrl || "https://generativelanguage.googleapis.com/v1beta"), path),
    key: (apiKey) => ({ "x-goog-api-key": apiKey }),
    outputLimit: (body) => objectAt(body, "generationConfig")["maxOutputTokens"],
    limited: (body, maxOutputTokens) => ({
      ...body,
      generationConfig: { ...objectAt(body, "generationConfig"), maxOutputTokens },
    }),
    repaired: withAllAnswers,
    ending: (path) => {
      const endTurnResponse = JSON.stringify({
        candidates: [
          {
            index: 0,
            content: { role: "model", parts: [{ text: "(The platform has ended this turn.)" }] },
            finishReason: "STOP",
          },
        ],
      });
      return path.endsWith(":streamGenerateContent")
        ? { contentType: "text/event-stream", body: `\ndata: ${endTurnResponse}\n\n` }
        : { contentType: "application/json", body: endTurnResponse };
    },
  },
};

const wireCallOf = (body: JsonObject): WireCall => ({ kind: kindOf(body), modelId: textAt(body, "model") });

/** Returns the kind of a request. All protocols use the same member for the tools of a request. */
const kindOf = ({ tools }: JsonObject): "step" | "side" => (Array.isArray(tools) && tools.length > 0 ? "step" : "side");

export const gatewayWire = (provider: string): GatewayWire | undefined =>
  Object.hasOwn(WIRES, provider) ? WIRES[provider] : undefined;
