import { types } from "node:util";

/**
 * All permitted fields of a log line; others are dropped. Prompts, payloads, tokens, headers, e-mail addresses and
 * names that users chose have no field, and must not get one.
 */
export const LOG_FIELDS = [
  // who and what
  "service",
  "version",
  "requestId",
  "traceId",
  "spanId",
  "teamUid",
  "principalType",
  "principalUid",
  "callerService",
  "operation",
  "outcome",
  "reason",
  "kind",
  "durationMs",
  "status",
  "method",
  "route",
  // resources
  "runUid",
  "executionId",
  "attempt",
  "workerUid",
  "taskUid",
  "factoryUid",
  "versionUid",
  "agentUid",
  "artifactUid",
  "environmentUid",
  "scheduleUid",
  "entity",
  "entityUid",
  "eventUid",
  "eventType",
  "harness",
  "state",
  "exitCode",
  // infrastructure
  "component",
  "consumer",
  "source",
  "position",
  "head",
  "logUid",
  "workKind",
  "workId",
  "lane",
  "count",
  "attempts",
  "delayMs",
  "address",
  "port",
  "pid",
  "signal",
  "database",
  "migration",
  "path",
  "bytes",
  // the error returned at this boundary, with its causes
  "error",
] as const;

export type LogField = (typeof LOG_FIELDS)[number];
export type LogFields = Partial<Readonly<Record<LogField, unknown>>>;

const allowed: ReadonlySet<string> = new Set(LOG_FIELDS);

/**
 * Returns the permitted fields, in addition to those in `result`, and reduces an error to name, message, stack and
 * causes (never its other properties).
 */
export function allowListed(
  fields: Readonly<Record<string, unknown>>,
  result: Record<string, unknown> = {},
): Record<string, unknown> {
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined && allowed.has(name)) result[name] = name === "error" ? describeError(value) : value;
  }
  return result;
}

type DescribedError = {
  name: string;
  message: string;
  reason?: string;
  code?: string;
  stack?: string;
  cause?: DescribedError;
};

const CAUSES_MAX = 5;

function describeError(error: unknown, depth = 0): DescribedError {
  if (!types.isNativeError(error))
    return { name: typeof error, message: typeof error === "string" ? error : "thrown value is not an Error" };
  const { reason, code } = error as { reason?: unknown; code?: unknown };
  return {
    name: error.name,
    message: error.message,
    ...(typeof reason === "string" ? { reason } : {}),
    ...(typeof code === "string" ? { code } : {}), // ECONNREFUSED, SQLSTATE
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(error.cause !== undefined && depth < CAUSES_MAX ? { cause: describeError(error.cause, depth + 1) } : {}),
  };
}
