export { canonicalJson } from "./canonical-json.ts";
export type { JsonObject, JsonValue } from "./json-value.ts";
export { present } from "./present.ts";
