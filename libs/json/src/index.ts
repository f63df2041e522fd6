export { canonicalJson } from "./canonical-json.ts";
export type { JsonObject, JsonValue } from "./json-value.ts";
export { omitUndefined } from "./omit-undefined.ts";
