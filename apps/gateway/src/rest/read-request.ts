import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { DomainError, invalidArgument, notFound } from "@millwright/errors";
import { canonicalJson } from "@millwright/json";
import { parseExactly } from "@millwright/payload-filter";
import { describeIssue } from "./describe-issue.ts";
import { resourceNameOf } from "./fields.ts";
import type { IdempotencyKey, Route } from "./route.ts";

export const BODY_BYTES_MAX = 1024 * 1024;
const JSON_DEPTH_MAX = 100;

/**
 * Returns the validated path parameters. A malformed value is a 404 if its schema names a resource, otherwise a 400.
 */
export function readParams(route: Route, raw: Readonly<Record<string, string>>): Record<string, unknown> {
  if (!route.params) return {};
  const result = route.params.safeParse(raw, { error: describeIssue });
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    const schema = route.params.shape[String(issue.path[0])] as z.ZodType | undefined;
    const resource = schema && resourceNameOf(schema);
    if (resource) throw notFound(resource);
  }
  throw invalid("invalid_parameter", "path", result.error);
}

/**
 * Returns the validated query parameters. Only list parameters can be repeated, and only map parameters use brackets.
 * Errors: invalid_parameter · invalid_body · invalid_text.
 */
export function readQuery(route: Route, querystring: string): Record<string, unknown> {
  if (!route.query) return {};
  const search = new URLSearchParams(querystring);
  const raw: Record<string, unknown> = {};
  for (const [name, schema] of Object.entries(route.query.shape)) {
    const value = rawValue(name, innermost(schema as z.ZodType), search);
    if (value !== undefined) raw[name] = value;
  }
  assertText(raw, "query");
  const result = route.query.safeParse(raw, { error: describeIssue });
  if (!result.success) throw invalid("invalid_parameter", "query", result.error);
  return result.data;
}

function rawValue(name: string, schema: z.ZodType, search: URLSearchParams): unknown {
  if (schema instanceof z.ZodRecord) {
    const keys = [...new Set(search.keys())].filter((key) => key.startsWith(`${name}[`) && key.endsWith("]"));
    return keys.length > 0
      ? Object.fromEntries(keys.map((key) => [key.slice(name.length + 1, -1), only(search.getAll(key))]))
      : only(search.getAll(name)); // a value without brackets fails the map's validation
  }
  const values = search.getAll(name);
  if (schema instanceof z.ZodArray) return values.length > 0 ? values : undefined;
  return only(values);
}

/** Returns the only value, or all values of a repeated key, which the schema of a single value rejects. */
const only = (values: string[]): string | string[] | undefined => (values.length > 1 ? values : values[0]);

function innermost(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable)
    return innermost(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodPipe) return innermost(schema.in as z.ZodType);
  return schema;
}

/**
 * Returns the body parsed as JSON, or undefined if it is empty.
 * Errors: content_type_not_json · malformed_json · body_too_large · invalid_body · invalid_text.
 */
export async function readJson(req: IncomingMessage, bytesMax: number, exactNumbers = false): Promise<unknown> {
  const bytes = await readBytes(req, bytesMax);
  if (bytes.length === 0) return undefined;
  const [type = "", ...parameters] = (req.headers["content-type"] ?? "")
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice(8)
    .replaceAll('"', "");
  if (
    !/^application\/([\w.-]+\+)?json$/.test(type) ||
    (charset !== undefined && charset !== "utf-8") ||
    req.headers["content-encoding"] !== undefined
  )
    throw invalidArgument(
      "content_type_not_json",
      "Send the body as application/json in UTF-8, without content encoding.",
    );
  let value: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    value = exactNumbers ? parseExactly(text) : JSON.parse(text);
  } catch {
    throw invalidArgument("malformed_json", "The body is not valid JSON in UTF-8.");
  }
  assertText(value, "body");
  return value;
}

async function readBytes(req: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const tooLarge = (found: string) =>
    new DomainError({
      kind: "too_large",
      reason: "body_too_large",
      message: `The body must have at most ${bytesMax} bytes (got ${found}). Send large input as attachments.`,
    });
  const declared = Number(req.headers["content-length"] ?? 0);
  if (declared > bytesMax) throw tooLarge(String(declared));
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bytesMax) throw tooLarge(`${size} or more`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function readBody(route: Route, value: unknown): unknown {
  if (!route.body) return undefined;
  const result = route.body.safeParse(value, { error: describeIssue });
  if (!result.success) throw invalid("invalid_body", "body", result.error);
  return result.data;
}

/**
 * Throws `invalid_text` for characters that PostgreSQL cannot store (NUL, lone surrogates), and `invalid_body` for deep
 * nesting, because later code recurses into the value.
 */
function assertText(value: unknown, where: string): void {
  const stack: { value: unknown; depth: number }[] = [{ value, depth: 0 }];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value: current, depth } = next;
    if (depth > JSON_DEPTH_MAX)
      throw invalidArgument("invalid_body", `${where}: must be nested at most ${JSON_DEPTH_MAX} levels deep.`);
    if (typeof current === "string" && /[\0\p{Surrogate}]/u.test(current))
      throw invalidArgument(
        "invalid_text",
        `${where}: a text contains the character NUL (U+0000) or invalid Unicode. Remove it.`,
      );
    if (current === null || typeof current !== "object") continue;
    for (const [key, inner] of Object.entries(current))
      stack.push({ value: key, depth }, { value: inner, depth: depth + 1 });
  }
}

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Returns the Idempotency-Key of a request with the operation and body hash that it is bound to. Throws
 * `invalid_idempotency_key` if it is malformed.
 */
export function readIdempotencyKey(
  route: Route,
  path: string,
  header: string | string[] | undefined,
  body: unknown,
): IdempotencyKey | undefined {
  if (!route.idempotent || header === undefined) return undefined;
  if (typeof header !== "string" || !IDEMPOTENCY_KEY.test(header))
    throw invalidArgument("invalid_idempotency_key", "Idempotency-Key must be 1 to 255 visible ASCII characters.");
  return {
    key: header,
    operation: `${route.method} ${path}`,
    bodyHash: createHash("sha256")
      .update(canonicalJson(body ?? null))
      .digest("hex"),
  };
}

const ISSUES_SHOWN = 5;

function invalid(reason: string, where: string, error: z.ZodError): DomainError {
  const texts = error.issues
    .slice(0, ISSUES_SHOWN)
    .map((issue) => `${[where, ...issue.path].map(String).join(".")}: ${issue.message}`);
  if (error.issues.length > ISSUES_SHOWN) texts.push(`and ${error.issues.length - ISSUES_SHOWN} more`);
  return invalidArgument(reason, texts.join("; "));
}
