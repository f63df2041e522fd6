import {
  Code,
  ConnectError,
  type ConnectRouterOptions,
  type ContextValues,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import type { DescMethod } from "@bufbuild/protobuf";
import type { Caller } from "@millwright/caller";
import { events, health } from "@millwright/contracts";
import { asDomainError, DomainError, isDependencyAbsent, isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import {
  currentScope,
  inScope,
  iterateInScope,
  openScope,
  parseTraceparent,
  TRACEPARENT,
  type RequestContext,
  type Span,
} from "@millwright/telemetry";
import { REQUEST_ID_HEADER } from "./caller-token.ts";
import { CALL, REQUEST } from "./context.ts";
import { toConnectError } from "./errors.ts";
import { LOCAL } from "./in-process-callers.ts";
import { MESSAGE_BYTES_MAX, methodName, rpcAttributes, type ServerOptions } from "./server-options.ts";

/**
 * Returns the options of every server: authenticates the caller before the body is read, rejects services that are not
 * in the table, translates errors, and logs and counts each finished RPC.
 */
export function serverOptions(options: ServerOptions): ConnectRouterOptions {
  const polled = [...health.Health.methods, ...events.EventFeedService.methods].map(methodName);
  const quiet = new Set([...polled, ...(options.quiet ?? [])]);
  const finish = recorder(options, quiet);
  return {
    requestGate: gate(options, quiet, finish),
    interceptors: [translate(finish)],
    readMaxBytes: MESSAGE_BYTES_MAX,
  };
}

function gate(options: ServerOptions, quiet: ReadonlySet<string>, finish: Finish) {
  return async (context: HandlerContext): Promise<void> => {
    const startedMs = performance.now();
    const local = context.values.get(LOCAL);
    const requestId = local?.caller?.requestId ?? context.requestHeader.get(REQUEST_ID_HEADER) ?? newUid();
    const { scope, span } = openScope(methodName(context.method), {
      tracer: quiet.has(methodName(context.method)) ? undefined : options.tracer,
      ...{ kind: "server", attributes: rpcAttributes(context.method), fields: { requestId } },
      parent: local ? currentScope()?.trace : parseTraceparent(context.requestHeader.get(TRACEPARENT)),
    });
    const anonymous: RequestContext = { requestId, traceId: scope.trace.traceId };
    context.values.set(REQUEST, anonymous).set(CALL, { scope, span });
    const service = context.method.parent.typeName;
    if (service === health.Health.typeName || options.open?.includes(service)) return;
    try {
      const method = methodName(context.method);
      const caller = local?.caller ?? (await options.verifier.authenticate(context.requestHeader, method));
      if (!caller) return;
      context.values.set(REQUEST, { ...anonymous, requestId: caller.requestId, caller, ...deadlineOf(context) });
      context.values.set(CALL, { span, scope: { ...scope, fields: { ...scope.fields, requestId: caller.requestId } } });
      if (!mayEnter(caller, options.allow?.[method])) throw serviceRefused(caller, method);
    } catch (error) {
      throw finish(context.method, context.values, startedMs, error);
    }
  };
}

const deadlineOf = (context: HandlerContext): { deadline?: Date } => {
  const leftMs = context.timeoutMs();
  return leftMs === undefined ? {} : { deadline: new Date(Date.now() + leftMs) };
};

const mayEnter = (caller: Caller, allowed: readonly string[] | undefined): boolean =>
  caller.principal.type !== "service" || (allowed?.includes(caller.principal.uid) ?? false);

const serviceRefused = (caller: Caller, method: string): DomainError =>
  new DomainError({
    kind: "permission_denied",
    reason: "service_not_allowed",
    message: "This service is not allowed to call this method without a caller.",
    metadata: { service: caller.principal.uid, method },
  });

function translate(finish: Finish): Interceptor {
  return (next) => async (request) => {
    const startedMs = performance.now();
    const values = request.contextValues;
    const { scope } = values.get(CALL)!; // the gate runs first
    try {
      const response = await inScope(scope, () => next(request));
      if (response.stream)
        return {
          ...response,
          message: watched(iterateInScope(scope, response.message), (error) =>
            finish(request.method, values, startedMs, error),
          ),
        };
      finish(request.method, values, startedMs);
      return response;
    } catch (error) {
      throw finish(request.method, values, startedMs, error);
    }
  };
}

async function* watched<T>(messages: AsyncIterable<T>, finish: (error?: unknown) => unknown): AsyncIterable<T> {
  let failed = false;
  try {
    yield* messages;
  } catch (error) {
    failed = true;
    throw finish(error);
  } finally {
    if (!failed) finish(); // ended, or cancelled by the reader
  }
}

/** Records the end of an RPC and returns the error for the client. */
type Finish = (method: DescMethod, values: ContextValues, startedMs: number, error?: unknown) => unknown;

function recorder(options: ServerOptions, quiet: ReadonlySet<string>): Finish {
  const requests = options.metrics.counter("millwright_rpc_requests_total", "Finished RPCs by outcome.", [
    "service",
    "method",
    "outcome",
  ]);
  const seconds = options.metrics.histogram("millwright_rpc_duration_seconds", "How long RPCs took.", [
    "service",
    "method",
  ]);
  return (method, values, startedMs, error) => {
    const [context, call] = [values.get(REQUEST), values.get(CALL)];
    const durationMs = Math.round(performance.now() - startedMs);
    const operation = methodName(method);
    const failure = error === undefined ? undefined : failureOf(error);
    const outcome = failure?.outcome ?? "ok";
    requests.inc({ service: options.service, method: operation, outcome });
    seconds.observe({ service: options.service, method: operation }, durationMs / 1000);
    endSpan(call?.span, failure);
    const fields = {
      ...call?.scope.fields,
      teamUid: context?.caller?.activeTeamUid,
      callerService: context?.caller?.principal.type === "service" ? context.caller.principal.uid : undefined,
      operation,
      outcome,
      reason: failure?.reason,
      durationMs,
    };
    if (failure?.logLevel) options.log[failure.logLevel]({ ...fields, error }, "rpc failed");
    else if (!failure && quiet.has(operation)) options.log.debug(fields, "rpc finished");
    else options.log.info(fields, "rpc finished");
    return failure?.error;
  };
}

/** Whether the fault is the server's, not the caller's. */
const FAULTS: ReadonlySet<Code> = new Set([
  Code.Internal,
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Unknown,
  Code.DataLoss,
]);

function endSpan(span: Span | undefined, failure: CallFailure | undefined): void {
  const errorType = failure && (failure.reason ?? failure.outcome);
  span?.set({
    "rpc.status_code": failure ? Code[failure.error.code].replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase() : "OK",
    "error.type": errorType,
  });
  if (failure && errorType !== undefined && FAULTS.has(failure.error.code)) span?.fail(errorType);
  span?.end();
}

type CallFailure = {
  error: ConnectError;
  outcome: string;
  reason?: string;
  /** Level of the log line that has the cause; the others have no cause worth logging. */
  logLevel?: "warn" | "error";
};

function failureOf(error: unknown): CallFailure {
  if (isDomainError(error)) {
    return {
      error: toConnectError(error),
      outcome: error.kind,
      reason: error.reason,
      ...(error.kind === "internal" ? { logLevel: "error" } : {}),
    };
  }
  // The framework's own errors (deadline exceeded, client gone, unknown method, server stopping) keep their codes, not
  // their texts; no other code may choose a status.
  if (error instanceof ConnectError && FRAMEWORK_CODES.has(error.code)) {
    const outcome = Code[error.code].toLowerCase();
    return { error: new ConnectError(outcome, error.code), outcome };
  }
  if (error instanceof Error && "code" in error && CALLER_GONE.has(error.code))
    return { error: new ConnectError("canceled", Code.Canceled), outcome: "canceled" };
  const hidden = asDomainError(error);
  return { ...failureOf(hidden), logLevel: isDependencyAbsent(hidden) ? "warn" : "error" };
}

/** Codes of the errors that Node.js reports if the client of a call disconnects: while it is read, or written to. */
const CALLER_GONE: ReadonlySet<unknown> = new Set(["ERR_STREAM_PREMATURE_CLOSE", "ERR_HTTP2_INVALID_STREAM"]);

const FRAMEWORK_CODES: ReadonlySet<Code> = new Set([
  Code.Canceled,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Aborted,
  Code.Unavailable,
]);
