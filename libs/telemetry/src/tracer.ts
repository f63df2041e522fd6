import { newTraceContext, type TraceContext } from "./trace-context.ts";

export type SpanKind = "internal" | "server" | "client" | "consumer";

/**
 * Facts of a span: uids, numbers, and words that this code or a contract chose. Never what people or models wrote, headers, addresses with
 * a query, error texts: whoever reads traces may read none of it.
 */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export type SpanOptions = {
  readonly kind?: SpanKind;
  readonly attributes?: SpanAttributes;
  /** What it is a part of; absent: it begins a trace. */
  readonly parent?: TraceContext | undefined;
  /** Other spans that brought it about. */
  readonly links?: readonly TraceContext[];
};

/** A piece of work that is being timed. */
export interface Span {
  /** What travels on from here. */
  readonly context: TraceContext;
  /** For what is known by its name only later, such as a route. */
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** It failed, and for which kind of reason (`errorType`): a reason or code, never a text. What is said first stands. */
  fail(errorType: string): void;
  end(): void;
}

/** Makes the spans of one service. */
export interface Tracer {
  /** Whether anybody gets the spans: spares the work of describing them. */
  readonly isRecording: boolean;
  start(name: string, options?: SpanOptions): Span;
}

/** Passes trace contexts on and records nothing. */
export const NO_TRACER: Tracer = {
  isRecording: false,
  start: (_name, { parent } = {}) => silentSpan(parent ?? newTraceContext()),
};

const silentSpan = (context: TraceContext): Span => ({ context, rename() {}, set() {}, fail() {}, end() {} });

/** What a trace may say about an error: its reason, its code or its class. */
export function errorTypeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "unknown";
  const { reason, code, name } = error as { reason?: unknown; code?: unknown; name?: unknown };
  const told = [reason, code, name].find((text) => typeof text === "string" && /^\w{1,64}$/.test(text));
  return (told as string | undefined) ?? "unknown";
}
