import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { ApiDocument } from "./client.ts";

type Schema = Record<string, any>;

/** An operation of the API document. Its path is below `/api/v1`. */
export type Operation = {
  readonly method: string;
  readonly path: string;
  readonly pathParameters: readonly { readonly name: string; readonly schema: Schema }[];
  readonly query: readonly { readonly name: string; readonly schema: Schema; readonly isRequired: boolean }[];
  readonly body: Schema | undefined;
  readonly takesTeamHeader: boolean;
  /** Permissions that a key needs; empty if none is required. */
  readonly permissions: readonly string[];
  /** "none": credentials are ignored; "optional": anonymous callers can read public resources. */
  readonly access: "required" | "optional" | "none";
};

export const operationsOf = (document: ApiDocument): Operation[] =>
  Object.entries(document.paths)
    .filter(([path]) => path.startsWith("/api/v1/"))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, declared]) => {
        const parameters: any[] = declared.parameters ?? [];
        const security: object[] = declared.security ?? [{ apiKey: [] }];
        return {
          method: method.toUpperCase(),
          path: path.replace("/api/v1", ""),
          pathParameters: parameters.filter((one) => one.in === "path").map(({ name, schema }) => ({ name, schema })),
          query: parameters
            .filter((one) => one.in === "query")
            .map((one) => ({ name: one.name, schema: one.schema, isRequired: one.required === true })),
          body: declared.requestBody?.content["application/json"].schema,
          takesTeamHeader: parameters.some((one) => one.in === "header" && /team-uid$/i.test(one.name)),
          permissions: declared["x-required-permissions"] ?? [],
          access:
            security.length === 0
              ? "none"
              : security.some((one) => Object.keys(one).length === 0)
                ? "optional"
                : "required",
        };
      }),
    );

/** Generates valid and invalid values from the schemas of the document. */
export class Samples {
  readonly #document: ApiDocument;
  readonly #ajv: Ajv2020;

  constructor(document: ApiDocument) {
    this.#document = document;
    this.#ajv = new Ajv2020({ strict: false, validateFormats: true });
    addFormats.default(this.#ajv);
    this.#ajv.addSchema(document, "openapi");
  }

  /** Resolves `$ref`. */
  resolve(schema: Schema): Schema {
    const name = /^#\/components\/schemas\/(.+)$/.exec(schema["$ref"] ?? "")?.[1];
    return name === undefined ? schema : this.resolve(this.#document.components.schemas[name]);
  }

  /** Returns a minimal valid value. */
  valid(given: Schema): unknown {
    const schema = this.resolve(given);
    const {
      type,
      enum: values,
      minItems = 0,
      minimum = 1,
      properties = {},
      required = [],
      anyOf,
      oneOf,
      allOf,
    } = schema;
    if (values) return values[0];
    if ("const" in schema) return schema["const"];
    if (anyOf ?? oneOf) return this.valid((anyOf ?? oneOf)[0]);
    if (allOf) return Object.assign({}, ...allOf.map((one: Schema) => this.valid(one)));
    switch (Array.isArray(type) ? type[0] : type) {
      case "string":
        return this.#text(schema);
      case "integer":
      case "number":
        return minimum;
      case "boolean":
        return true;
      case "array":
        return Array.from({ length: minItems }, () => this.valid(schema["items"]));
      case "object":
        return Object.fromEntries(required.map((name: string) => [name, this.valid(properties[name])]));
      default:
        return {};
    }
  }

  /** Returns values that the schema rejects. */
  wrong(schema: Schema): unknown[] {
    return [null, -1, 1.5, "", "no such thing", true, [1], {}].filter((value) => !this.takes(schema, value));
  }

  /** Returns the schemas of the objects that a body may be. */
  variants(given: Schema): Schema[] {
    const schema = this.resolve(given);
    const alternatives: Schema[] | undefined = schema["anyOf"] ?? schema["oneOf"];
    return alternatives ? alternatives.flatMap((one) => this.variants(one)) : [schema];
  }

  /** Returns whether the schema accepts any JSON value. */
  isAnything(schema: Schema): boolean {
    return ["any text", 1, null, {}, []].every((value) => this.takes(schema, value));
  }

  takes(schema: Schema, value: unknown): boolean {
    return this.#ajv.validate(this.#absolute(schema), value);
  }

  /** Returns texts of a query parameter that the schema rejects, and invalid cursors. */
  wrongTexts(name: string, given: Schema): string[] {
    const schema = this.resolve(given);
    const item: Schema = schema["items"] ? this.resolve(schema["items"]) : schema;
    const { type, format, maximum = 0, enum: values } = item;
    if (name === "cursor") return ["", "no-cursor", "AAAA", "a".repeat(5_000), "%00"];
    if (type === "integer")
      return [
        "",
        "x",
        "1.5",
        "1e1",
        "99999999999999999999",
        String(maximum + 1),
        String((item["minimum"] ?? 0) - 1),
        "-1",
      ].filter((text) => !(text === "-1" && item["minimum"] === undefined));
    if (type === "boolean") return ["", "1", "yes", "TRUE"];
    if (format === "date-time") return ["", "x", "2026-02-30", "2026-11-20T10:00:00", "1700000000"];
    if (values) return ["", "nonsense", `${values[0]},${values[0]}`];
    return ["\0"];
  }

  /** Rewrites `$ref` to the id under which ajv knows the document. */
  #absolute(schema: Schema): Schema {
    return JSON.parse(JSON.stringify(schema), (key, value) => (key === "$ref" ? `openapi${value}` : value)) as Schema;
  }

  #text({ pattern, format, minLength = 0 }: Schema): string {
    if (format === "uuid") return "0198c2d0-0000-7000-8000-00000000dead";
    if (format === "date-time") return "2026-11-20T10:00:00Z";
    if (format === "uri") return "https://example.com/";
    if (format === "email") return "somebody@example.com";
    const candidates = ["sample", "SAMPLE", "c2FtcGxl", "0 8 * * *", "1"].filter((text) => text.length >= minLength);
    const found = candidates.find((text) => pattern === undefined || new RegExp(pattern).test(text));
    if (found === undefined) throw new Error(`Teach the prober a text for ${pattern}.`);
    return found;
  }
}
