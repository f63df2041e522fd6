/** Values that a `jsonb` column, a Struct and a JSON text can all represent. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export type JsonObject = { [key: string]: JsonValue };
