import { AsyncLocalStorage } from "node:async_hooks";
import type { LogFields } from "./log-fields.ts";
import type { TraceContext } from "./trace-context.ts";
import { errorTypeOf, NO_TRACER, type Span, type SpanOptions, type Tracer } from "./tracer.ts";

/**
 * Context of everything that happens on behalf of one request, event or execution. It follows the asynchronous calls
 * instead of being an argument, because no decision may depend on it: only log lines, spans and outgoing trace headers
 * read it.
 */
export type Scope = {
  readonly trace: TraceContext;
  /** Creates the spans below `trace`. */
  readonly tracer: Tracer;
  /** Added to every log line within the scope. */
  readonly fields: LogFields;
};

const scopes = new AsyncLocalStorage<Scope | undefined>();

/** Returns undefined outside of every request: background loops, starts and stops. */
export const currentScope = (): Scope | undefined => scopes.getStore();

export const inScope = <T>(scope: Scope, f: () => T): T => scopes.run(scope, f);

/** Runs `f` outside of every scope: for shared work that one request happens to start. */
export const outsideScopes = <T>(f: () => T): T => (scopes.getStore() === undefined ? f() : scopes.run(undefined, f));

/** Runs each step of an iteration in the given scope, whatever scope its reader has. */
export async function* iterateInScope<T>(scope: Scope, messages: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = scopes.run(scope, () => messages[Symbol.asyncIterator]());
  try {
    for (;;) {
      const step = await scopes.run(scope, () => iterator.next());
      if (step.done) return;
      yield step.value;
    }
  } finally {
    await scopes.run(scope, () => iterator.return?.());
  }
}

/** Binds an iteration to the current scope, for a reader that has left it by then (a streamed response). */
export function bindScope<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  const scope = scopes.getStore();
  return scope ? iterateInScope(scope, messages) : messages;
}

export type ScopeOptions = Omit<SpanOptions, "parent"> & {
  readonly tracer: Tracer | undefined;
  /** Trace context of the cause, as received with it; absent: a new trace starts. */
  readonly parent: TraceContext | undefined;
  readonly fields?: LogFields;
};

/** Opens the scope of an incoming request or event; the caller must end the span. */
export function openScope(
  name: string,
  { tracer = NO_TRACER, parent, fields = {}, ...span }: ScopeOptions,
): { scope: Scope; span: Span } {
  const started = tracer.start(name, { ...span, parent });
  return {
    span: started,
    scope: { trace: started.context, tracer, fields: withTrace(fields, started.context, tracer) },
  };
}

/** Runs `f` in a new scope, as `openScope`, and ends the span with it. */
export function traced<T>(name: string, options: ScopeOptions, f: (span: Span) => Promise<T>): Promise<T> {
  const { scope, span } = openScope(name, options);
  return scopes.run(scope, () => ended(span, f));
}

/** Runs `f` in a span below the current one; without a recorder, just runs it. */
export function inSpan<T>(
  name: string,
  options: Omit<SpanOptions, "parent">,
  f: (span: Span) => Promise<T>,
): Promise<T> {
  const scope = scopes.getStore();
  if (!scope?.tracer.isRecording) return f(NOTHING);
  const span = scope.tracer.start(name, { ...options, parent: scope.trace });
  return scopes.run(
    { ...scope, trace: span.context, fields: withTrace(scope.fields, span.context, scope.tracer) },
    () => ended(span, f),
  );
}

const NOTHING: Span = NO_TRACER.start("", { parent: { traceId: "", spanId: "", isSampled: false } });

async function ended<T>(span: Span, f: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await f(span);
  } catch (error) {
    span.fail(errorTypeOf(error));
    throw error;
  } finally {
    span.end();
  }
}

const withTrace = (fields: LogFields, { traceId, spanId }: TraceContext, tracer: Tracer): LogFields => ({
  ...fields,
  traceId,
  ...(tracer.isRecording ? { spanId } : {}),
});
