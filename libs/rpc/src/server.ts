import { Code, ConnectError, type ConnectRouterOptions, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import type { DescMethod } from "@bufbuild/protobuf";
import type { Caller } from "@millwright/caller";
import { health } from "@millwright/contracts";
import { DomainError, isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import type { RequestContext } from "@millwright/telemetry";
import { REQUEST, traceIdFrom } from "./context.ts";
import { toConnectError } from "./errors.ts";
import { methodName, type ServerOptions } from "./server-options.ts";

/** The largest message a server reads: a run with five attachments of 10 MB, a definition tree of 20 MiB. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

/**
 * What every door does: learns the caller before the body is read, refuses services that the table does not name,
 * translates errors, logs one line and counts once per finished RPC.
 */
export function serverOptions(options: ServerOptions): ConnectRouterOptions {
  const finish = recorder(options);
  return { requestGate: gate(options, finish), interceptors: [translate(finish)], readMaxBytes: MESSAGE_BYTES_MAX };
}

function gate(options: ServerOptions, finish: Finish) {
  return async (context: HandlerContext): Promise<void> => {
    const startedMs = performance.now();
    const anonymous: RequestContext = { requestId: context.requestHeader.get("x-request-id") ?? newUid(), traceId: traceIdFrom(context.requestHeader) };
    context.values.set(REQUEST, anonymous);
    const service = context.method.parent.typeName;
    if (service === health.Health.typeName || options.open?.includes(service)) return;
    try {
      const method = methodName(context.method);
      const caller = await options.verifier.authenticate(context.requestHeader, method);
      if (!caller) return;
      context.values.set(REQUEST, { ...anonymous, requestId: caller.requestId, caller, ...deadlineOf(context) });
      if (!mayEnter(caller, options.allow?.[method])) throw serviceRefused(caller, method);
    } catch (error) {
      throw finish(context.method, context.values.get(REQUEST), startedMs, error);
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
    message: "This service may not call this method in its own name.",
    metadata: { service: caller.principal.uid, method },
  });

function translate(finish: Finish): Interceptor {
  return (next) => async (request) => {
    const startedMs = performance.now();
    const context = request.contextValues.get(REQUEST);
    try {
      const response = await next(request);
      if (response.stream) return { ...response, message: watched(response.message, (error) => finish(request.method, context, startedMs, error)) };
      finish(request.method, context, startedMs);
      return response;
    } catch (error) {
      throw finish(request.method, context, startedMs, error);
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
    if (!failed) finish(); // ended, or left by the reader
  }
}

/** Records the end of an RPC and gives the error to answer. */
type Finish = (method: DescMethod, context: RequestContext | undefined, startedMs: number, error?: unknown) => unknown;

function recorder(options: ServerOptions): Finish {
  const requests = options.metrics.counter("millwright_rpc_requests_total", "Finished RPCs by outcome.", ["service", "method", "outcome"]);
  const seconds = options.metrics.histogram("millwright_rpc_duration_seconds", "How long RPCs took.", ["service", "method"]);
  const quiet = new Set([...health.Health.methods.map(methodName), ...(options.quiet ?? [])]);
  return (method, context, startedMs, error) => {
    const durationMs = Math.round(performance.now() - startedMs);
    const operation = methodName(method);
    const answer = error === undefined ? undefined : answerTo(error);
    const outcome = answer?.outcome ?? "ok";
    requests.inc({ service: options.service, method: operation, outcome });
    seconds.observe({ service: options.service, method: operation }, durationMs / 1000);
    const fields = {
      requestId: context?.requestId,
      traceId: context?.traceId,
      teamUid: context?.caller?.activeTeamUid,
      callerService: context?.caller?.principal.type === "service" ? context.caller.principal.uid : undefined,
      operation,
      outcome,
      reason: answer?.reason,
      durationMs,
    };
    if (answer?.loud) options.log.error({ ...fields, error }, "rpc failed");
    else if (!answer && quiet.has(operation)) options.log.debug(fields, "rpc finished");
    else options.log.info(fields, "rpc finished");
    return answer?.error;
  };
}

type Answer = { error: ConnectError; outcome: string; reason?: string; loud: boolean };

function answerTo(error: unknown): Answer {
  if (isDomainError(error)) {
    return { error: toConnectError(error), outcome: error.kind, reason: error.reason, loud: error.kind === "internal" };
  }
  // The framework's own answers (deadline passed, client gone, method not served, server stopping) keep their codes, not
  // their texts; nothing else may choose a code.
  if (error instanceof ConnectError && FRAMEWORK_CODES.has(error.code)) {
    const outcome = Code[error.code].toLowerCase();
    return { error: new ConnectError(outcome, error.code), outcome, loud: false };
  }
  const hidden = new DomainError({ kind: "internal", reason: "internal", message: "Something went wrong." });
  return { error: toConnectError(hidden), outcome: "internal", reason: "internal", loud: true };
}

const FRAMEWORK_CODES: ReadonlySet<Code> = new Set([Code.Canceled, Code.DeadlineExceeded, Code.Unimplemented, Code.Aborted, Code.Unavailable]);
