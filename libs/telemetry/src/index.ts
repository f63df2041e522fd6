export { logLevel } from "./log-level.ts";
export { ignoreStandardStreamErrors, LineOutput } from "./line-output.ts";
export { createLogger, type Logger, type LoggerOptions } from "./logger.ts";
export { LOG_FIELDS, type LogField, type LogFields } from "./log-fields.ts";
export { Metrics } from "./metrics.ts";
export type { RequestContext } from "./context.ts";
export {
  currentScope,
  inScope,
  inSpan,
  iterateInScope,
  bindScope,
  openScope,
  outsideScopes,
  traced,
  type ScopeOptions,
  type Scope,
} from "./scope.ts";
export {
  formatTraceparent,
  newTraceContext,
  parseTraceparent,
  TRACEPARENT,
  type TraceContext,
} from "./trace-context.ts";
export {
  errorTypeOf,
  NO_TRACER,
  type Span,
  type SpanAttributes,
  type SpanKind,
  type SpanOptions,
  type Tracer,
} from "./tracer.ts";
export {
  loadTracingSettings,
  tracingOf,
  tracingSettings,
  type Tracing,
  type TracingDeps,
  type TracingSettings,
} from "./tracing-settings.ts";
export { startTracing } from "./tracing.ts";
