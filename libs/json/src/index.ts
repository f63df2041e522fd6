export { canonicalJson } from "./canonical-json.ts";
export { present } from "./present.ts";
