import { expect } from "@jest/globals";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

/** The parts of an OpenAPI 3.1 document that are used here. */
export type OpenApiDocument = { readonly paths?: Readonly<Record<string, unknown>> | undefined };

/** A response of the public API; `body` is parsed JSON, else text. */
export type ApiResponse = { readonly status: number; readonly headers: Headers; readonly body: any };

type Operation = {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
};

/**
 * Validates a response against the schema of its operation and status. For unknown operations, validates only the form
 * of a problem.
 */
export function responseValidator(
  document: OpenApiDocument,
): (method: string, path: string, response: ApiResponse) => void {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, "openapi");
  const compiled = new Map<string, ValidateFunction>();
  const templates = Object.keys(document.paths ?? {}).toSorted((a, b) => a.split("{").length - b.split("{").length);
  return (method, path, { status, headers, body }) => {
    expect(headers.get("x-request-id")).toMatch(/./);
    if (status === 404 || status === 405) expect(body).toMatchObject({ status, error_code: expect.any(String) });
    const template = templates.find((each) => new RegExp(`^${each.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path));
    const operations = document.paths?.[template ?? ""] as Record<string, Operation> | undefined;
    const operation = operations?.[method.toLowerCase()];
    if (!template || !operation) return;
    const documented = operation.responses[String(status)];
    if (!documented) throw new Error(`${method} ${template} does not document ${status}: ${JSON.stringify(body)}`);
    const types = Object.keys(documented.content ?? {});
    if (types.length === 0) return expect(body).toBe("");
    const type = types.find((each) => each === "*/*" || headers.get("content-type")?.includes(each));
    if (!type)
      throw new Error(
        `${method} ${template} ${status}: expected ${types.join(" or ")}, got ${headers.get("content-type")}`,
      );
    if (!/json/.test(type)) return;
    const escape = (part: string) => part.replaceAll("~", "~0").replaceAll("/", "~1");
    const ref = `openapi#/paths/${escape(template)}/${method.toLowerCase()}/responses/${status}/content/${escape(type)}/schema`;
    const check = compiled.get(ref) ?? ajv.compile({ $ref: ref.replaceAll("{", "%7B").replaceAll("}", "%7D") });
    compiled.set(ref, check);
    if (!check(body))
      throw new Error(`${method} ${template} ${status}: ${ajv.errorsText(check.errors)}\n${JSON.stringify(body)}`);
  };
}
