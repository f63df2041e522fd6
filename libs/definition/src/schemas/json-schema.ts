/** A JSON Schema of draft 2020-12, or a part of one. */
export type JsonSchema = boolean | { readonly [key: string]: unknown };

export const DRAFT = "https://json-schema.org/draft/2020-12/schema";

/** Non-blank text. */
export const TEXT: JsonSchema = { type: "string", pattern: "\\S" };
/** Non-blank text, or null: inherited. */
export const TEXT_OR_NULL: JsonSchema = { type: ["string", "null"], pattern: "\\S" };
export const TEXTS: JsonSchema = { type: "array", items: TEXT };
export const BOOLEAN: JsonSchema = { type: "boolean" };

export const enumOf = (values: readonly unknown[]): JsonSchema => ({ enum: [...values] });
export const common = (name: string): JsonSchema => ({ $ref: `common.schema.json#/$defs/${name}` });

type Shape = { readonly required?: readonly string[]; readonly more?: Readonly<Record<string, unknown>> };

/** A mapping with exactly these keys. */
export const closed = (
  properties: Readonly<Record<string, JsonSchema>>,
  { required = [], more = {} }: Shape = {},
): JsonSchema => ({
  type: "object",
  properties,
  ...(required.length > 0 && { required: [...required] }),
  ...more,
  additionalProperties: false,
});

/** A mapping with exactly these keys and those of an execution block. */
export const executing = (
  properties: Readonly<Record<string, JsonSchema>>,
  { required = [], more = {} }: Shape = {},
): JsonSchema => ({
  type: "object",
  ...(common("executionBlock") as object),
  properties,
  ...(required.length > 0 && { required: [...required] }),
  ...more,
  unevaluatedProperties: false,
});

/** A whole document. */
export const document = (id: string, title: string, description: string, schema: JsonSchema): JsonSchema => ({
  $schema: DRAFT,
  $id: id,
  title,
  description,
  ...(schema as object),
});
