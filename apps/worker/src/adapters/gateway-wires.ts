import type { JsonObject } from "@bufbuild/protobuf";
import { withAllAnswers } from "./gemini-contents.ts";
import { objectAt, textAt } from "../model/event-fields.ts";

/**
 * A call that a harness makes of its model: `step` offers it tools; `side` does not, such as for a title or a summary; `count` asks how long a
 * prompt is, and costs nothing.
 */
export type WireCall = { readonly kind: "step" | "side" | "count"; readonly modelId: string };

/** A provider's API as the gateway serves it, and passes it on. */
export type GatewayWire = {
  /** What a request to this path is; undefined: nothing that a harness may have. */
  readonly read: (path: string, body: JsonObject) => WireCall | undefined;
  /** Where the path goes at the provider. */
  readonly url: (baseUrl: string, path: string) => string;
  readonly key: (apiKey: string) => Readonly<Record<string, string>>;
  /** Tokens that the answer may have as it was asked for, and the request with another number. */
  readonly outputLimit: (body: JsonObject) => unknown;
  readonly limited: (body: JsonObject, tokens: number) => JsonObject;
  /** The same request in a form that the provider takes, where a harness asks in one that it does not. */
  readonly mended?: (body: JsonObject) => JsonObject;
  /** An answer to a call of this path that ends the turn, in place of the model's or behind what came of it. */
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
        ? answer(body)
        : path === "/v1/messages/count_tokens"
          ? { ...answer(body), kind: "count" }
          : undefined,
    // The address that people give for it is the one without the version.
    url: (baseUrl, path) => trimmed(baseUrl || "https://api.anthropic.com").replace(/\/v1$/, "") + path,
    key: (apiKey) => ({ "x-api-key": apiKey }),
    ...byField("max_tokens"),
  },
  openai: {
    read: (path, body) => (path === "/v1/responses" ? answer(body) : undefined),
    url: (baseUrl, path) => beneath("/v1", trimmed(baseUrl || "https://api.openai.com/v1"), path),
    key: bearer,
    ...byField("max_output_tokens"),
  },
  "openai-compatible": {
    read: (path, body) => (path === "/v1/chat/completions" ? answer(body) : undefined),
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
    mended: withAllAnswers,
    ending: (path) => {
      const answer = JSON.stringify({
        candidates: [
          {
            index: 0,
            content: { role: "model", parts: [{ text: "(The platform has ended this turn.)" }] },
            finishReason: "STOP",
          },
        ],
      });
      return path.endsWith(":streamGenerateContent")
        ? { contentType: "text/event-stream", body: `\ndata: ${answer}\n\n` }
        : { contentType: "application/json", body: answer };
    },
  },
};

const answer = (body: JsonObject): WireCall => ({ kind: kindOf(body), modelId: textAt(body, "model") });

/** All wires name the tools of a request alike. */
const kindOf = ({ tools }: JsonObject): "step" | "side" => (Array.isArray(tools) && tools.length > 0 ? "step" : "side");

export const gatewayWire = (provider: string): GatewayWire | undefined =>
  Object.hasOwn(WIRES, provider) ? WIRES[provider] : undefined;
