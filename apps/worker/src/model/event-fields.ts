import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** The members of a JSON object; undefined ones are absent. */
export type Fields = { readonly [name: string]: JsonValue | undefined };

/** Returns a member of a payload as a string, or "" if it is not a string. */
export const textAt = (payload: JsonObject, key: string): string => {
  const value = payload[key];
  return typeof value === "string" ? value : "";
};

/** Returns a member of a payload as an object, or an empty object if it is not an object. */
export const objectAt = (payload: JsonObject, key: string): JsonObject => {
  const value = payload[key];
  return isAnObject(value) ? value : {};
};

export const isAnObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
