import { z } from "zod";
import { isUuid, NIL_UUID } from "@millwright/ids";
import { quoted } from "./describe-issue.ts";
import { recordOf } from "./own-record.ts";

/** Names of the resources that path parameters identify. A malformed id returns the same 404 as an absent resource. */
const resourceNames = new WeakMap<z.ZodType, string>();

/**
 * A path parameter such as `{runId}`: a UUID, lower-cased. Malformed: 404 `<resource>_not_found`, as from
 * `notFound(resource)`.
 */
export function pathUid(resource: string) {
  const schema = uuid();
  resourceNames.set(schema, resource);
  return schema;
}

/** A path parameter that is not a UUID (a name, a slug). Malformed: 404 `<resource>_not_found`. */
export function pathText(resource: string, form: RegExp) {
  const schema = z.string().regex(form);
  resourceNames.set(schema, resource);
  return schema;
}

/** Returns the name of the resource that a path parameter identifies; undefined if a malformed value is a 400. */
export const resourceNameOf = (schema: z.ZodType): string | undefined => resourceNames.get(schema);

/** A UUID in any case, lower-cased. Malformed: 400. */
export const uuid = () =>
  z
    .string()
    .refine(isUuid, { error: ({ input }) => `must be a UUID (got ${quoted(input)})` })
    .transform((text) => text.toLowerCase())
    .meta({ type: "string", format: "uuid" });

/** A UUID other than the nil UUID, lower-cased. Any other value: 400. */
export const nonzeroUuid = () =>
  uuid()
    .refine((uid) => uid !== NIL_UUID, "must not be the nil UUID")
    .meta({ type: "string", format: "uuid" });

/** 1 to 100 UUIDs other than the nil UUID, lower-cased and without duplicates. Any other value: 400. */
export const uuidList = () =>
  z
    .array(nonzeroUuid())
    .min(1)
    .max(100)
    .transform((uids) => [...new Set(uids)])
    .meta({ type: "array", items: { type: "string", format: "uuid" }, minItems: 1, maxItems: 100 });

/** A boolean query parameter: exactly `true` or `false`. */
export const queryBoolean = () =>
  z
    .enum(["true", "false"])
    .transform((text) => text === "true")
    .meta({ type: "boolean", enum: undefined });

/** A boolean query parameter with a default. */
export const queryFlag = (fallback: boolean, description: string) =>
  queryBoolean().default(fallback).meta({ type: "boolean", default: fallback, description });

/** An integer within inclusive bounds. Any other value: 400 with the value and the bounds. */
export const queryInt = ({ min, max }: { min: number; max: number }) =>
  z
    .string()
    .transform((text, context) => {
      const isWhole = /^-?\d{1,16}$/.test(text);
      if (isWhole && Number(text) >= min && Number(text) <= max) return Number(text);
      const got = isWhole ? text : quoted(text);
      context.addIssue({ code: "custom", message: `must be a whole number between ${min} and ${max} (got ${got})` });
      return z.NEVER;
    })
    .meta({ type: "integer", minimum: min, maximum: max });

/** One of the given values. Any other value: 400 with the value and the permitted values. */
export const queryChoice = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, {
    error: ({ input }) =>
      input === undefined
        ? `is required: one of ${values.join(", ")}`
        : `must be one of ${values.join(", ")} (got ${quoted(input)})`,
  });

/** A page size from 1 to `max`. Out of range: 400. */
export const pageLimit = (fallback: number, max = 100) =>
  queryInt({ min: 1, max }).default(fallback).meta({ type: "integer", minimum: 1, maximum: max, default: fallback });

/** An opaque cursor that an earlier page of the same list returned. */
export const cursor = () => z.string().min(1).max(4096).optional();

/** A query parameter that can be repeated: `state=A&state=B`. */
export const queryList = <T extends z.ZodType>(item: T) => z.array(item).max(100);

/** A query parameter in bracket notation: `metadata[key]=value`. */
export const queryMap = <T extends z.ZodType>(value: T) => recordOf(z.string(), value);

/** A filter by an exact text. An empty value is a 400, because it could mean that nothing or everything matches. */
export const queryText = () => z.string().min(1);

/** A parameter that the operation does not support: any value is a 400 with `message`. */
export const rejectedParameter = (message: string) =>
  z
    .string()
    .refine(() => false, message)
    .optional()
    .meta({ description: `Not supported, 400: ${message}` });

/**
 * Returns a public identifier in the form that services accept: a lower-cased UUID. A malformed identifier becomes the
 * nil UUID, which identifies nothing.
 */
export const uidOrNil = (text: string): string => (isUuid(text) ? text.toLowerCase() : NIL_UUID);

/**
 * An RFC 3339 time with any offset, or a date (midnight UTC), parsed to a Date. For query parameters and body members.
 */
export const instant = () =>
  z
    .string()
    .transform((text, context) => {
      const date = parseInstant(text);
      if (date) return date;
      context.addIssue({ code: "custom", message: `must be an RFC 3339 time or a date (got ${quoted(text)})` });
      return z.NEVER;
    })
    .meta({ type: "string", format: "date-time" });

// The offset sign may be a space: query parsing decodes a `+` that the client did not percent-encode to a space.
const INSTANT = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+ -])(\d\d):(\d\d)))?$/;

function parseInstant(text: string): Date | undefined {
  const parts = INSTANT.exec(text);
  if (!parts) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const offsetHours = Number(parts[9] ?? 0);
  const offsetMinutes = Number(parts[10] ?? 0);
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 23 || offsetMinutes > 59) return undefined;
  const ms = Number((parts[7] ?? "").padEnd(3, "0").slice(0, 3));
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  if (local.getUTCMonth() !== month - 1 || local.getUTCDate() !== day) return undefined;
  local.setUTCHours(hour, minute, second, ms);
  const offsetMs = (parts[8] === "-" ? -1 : 1) * (offsetHours * 60 + offsetMinutes) * 60_000;
  const instantUtc = new Date(local.getTime() - offsetMs);
  // Both PostgreSQL and protobuf's Timestamp support the years 1 to 9999.
  return instantUtc.getUTCFullYear() >= 1 && instantUtc.getUTCFullYear() <= 9999 ? instantUtc : undefined;
}
