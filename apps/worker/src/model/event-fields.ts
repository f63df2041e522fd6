import type { JsonObject } from "@bufbuild/protobuf";

/** A member of a payload as text; "" where it is none. */
export const textAt = (payload: JsonObject, key: string): string => {
  const value = payload[key];
  return typeof value === "string" ? value : "";
};

/** A member of a payload as an object; empty where it is none. */
export const objectAt = (payload: JsonObject, key: string): JsonObject => {
  const value = payload[key];
  return isAnObject(value) ? value : {};
};

export const isAnObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
