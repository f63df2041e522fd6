/** A JSON Schema of draft 2020-12, or a part of one. */
export type JsonSchema = boolean | { readonly [key: string]: unknown };

export const DRAFT = "https://json-schema.org/draft/2020-12/schema";

/** Text that is not blank. */
export const TEXT: JsonSchema = { type: "string", pattern: "\\S" };
/** Text that is not blank, or null: inherited. */
export const TEXT_OR_NULL: JsonSchema = { type: ["string", "null"], pattern: "\\S" };
export const TEXTS: JsonSchema = { type: "array", items: TEXT };
export const BOOLEAN: JsonSchema = { type: "boolean" };

export const enumOf = (values: readonly unknown[]): JsonSchema => ({ enum: [...values] });
export const common = (name: string): JsonSchema => ({ $ref: `common.schema.json#/$defs/${name}` });

type Shape = { readonly required?: readonly string[]; readonly more?: Readonly<Record<string, unknown>> };

/** A mapping with these keys and no others. */
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

/** A mapping with these keys, those of an execution block, and no others. */
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
