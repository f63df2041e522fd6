import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { mapStrings } from "../spool/event-payload.ts";

/**
 * Members that contain no free text: keywords and ids of the protocol, settings of the call, signed texts of the
 * provider, and binary data. A secret that equals one of these values (`auto`, `user`) must not break the request.
 */
const PROTOCOL_MEMBERS = new Set([
  ...[
    "type",
    "role",
    "model",
    "id",
    "name",
    "namespace",
    "status",
    "phase",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "item_id",
  ],
  ...[
    "tool_choice",
    "toolConfig",
    "include",
    "reasoning",
    "effort",
    "service_tier",
    "generationConfig",
    "output_config",
    "cache_control",
  ],
  ...["context_management", "safetySettings", "stream_options", "previous_response_id", "prompt_cache_key"],
  ...["thinking", "signature", "thoughtSignature", "encrypted_content", "data", "media_type", "mime_type", "mimeType"],
]);
/** Arguments and results of tools, which are free text in every member. */
const TOOL_VALUES = new Set(["input", "args", "arguments", "response"]);
const DATA_URL = /^data:[^,]{0,200};base64,/;

/** Returns the request of an agent program with the secrets of its run masked in all free text. */
export function maskRequest(request: JsonObject, mask: (text: string) => string): JsonObject {
  const masked = (value: JsonValue, member: string): JsonValue => {
    if (PROTOCOL_MEMBERS.has(member)) return value;
    if (typeof value === "string") return DATA_URL.test(value) ? value : mask(value);
    if (Array.isArray(value))
      return value.map((item) => (member === "tools" ? maskDescriptions(item, mask) : masked(item, "")));
    if (value === null || typeof value !== "object") return value;
    return TOOL_VALUES.has(member) ? mapStrings(value, mask) : members(value);
  };
  const members = (object: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(object).map(([name, value]) => [name, masked(value, name)]));
  return members(request);
}

/** Masks the descriptions in tool definitions. The names and values of their schemas must not change. */
function maskDescriptions(value: JsonValue, mask: (text: string) => string): JsonValue {
  if (Array.isArray(value)) return value.map((item) => maskDescriptions(item, mask));
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, inner]) => [
      name,
      name === "description" && typeof inner === "string" ? mask(inner) : maskDescriptions(inner, mask),
    ]),
  );
}
