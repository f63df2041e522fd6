import { newTraceContext, type TraceContext } from "./trace-context.ts";

export type SpanKind = "internal" | "server" | "client" | "consumer";

/**
 * Attributes of a span: uids, numbers, and constants of this code or a contract. Never text written by people or
 * models, headers, addresses with a query, or error texts: readers of traces may not be permitted to see them.
 */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export type SpanOptions = {
  readonly kind?: SpanKind;
  readonly attributes?: SpanAttributes;
  /** The parent; absent: a new trace starts. */
  readonly parent?: TraceContext | undefined;
  /** Other spans that caused it. */
  readonly links?: readonly TraceContext[];
};

/** A timed piece of work. */
export interface Span {
  /** The context to send on. */
  readonly context: TraceContext;
  /** For a name that is known only later, such as that of a route. */
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** Marks the span as failed with an `errorType`: a reason or code, never a text. The first call takes precedence. */
  fail(errorType: string): void;
  end(): void;
}

/** Creates the spans of one service. */
export interface Tracer {
  /** Whether spans are recorded; if not, callers need not compute attributes. */
  readonly isRecording: boolean;
  start(name: string, options?: SpanOptions): Span;
}

/** Passes trace contexts on and records nothing. */
export const NO_TRACER: Tracer = {
  isRecording: false,
  start: (_name, { parent } = {}) => silentSpan(parent ?? newTraceContext()),
};

const silentSpan = (context: TraceContext): Span => ({ context, rename() {}, set() {}, fail() {}, end() {} });

/** Returns what a trace may contain about an error: its reason, its code or its class. */
export function errorTypeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "unknown";
  const { reason, code, name } = error as { reason?: unknown; code?: unknown; name?: unknown };
  const type = [reason, code, name].find((text) => typeof text === "string" && /^\w{1,64}$/.test(text));
  return (type as string | undefined) ?? "unknown";
}
