import type { SpanAttributes, SpanKind, SpanOptions, TraceContext, Tracer } from "@millwright/telemetry";

export type RecordedSpan = {
  name: string;
  readonly kind: SpanKind;
  readonly context: TraceContext;
  readonly parent: TraceContext | undefined;
  readonly links: readonly TraceContext[];
  attributes: SpanAttributes;
  error?: string;
  isEnded: boolean;
};

/** Returns a tracer that stores its spans, in the order of their starts. */
export function memoryTracer(): Tracer & { readonly spans: RecordedSpan[] } {
  const spans: RecordedSpan[] = [];
  return {
    spans,
    isRecording: true,
    start(name, { kind = "internal", attributes = {}, parent, links = [] }: SpanOptions = {}) {
      const number = String(spans.length + 1);
      const context = {
        traceId: parent?.traceId ?? number.padStart(32, "f"),
        spanId: number.padStart(16, "0"),
        isSampled: true,
      };
      const span: RecordedSpan = { name, kind, context, parent, links, attributes, isEnded: false };
      spans.push(span);
      return {
        context,
        rename: (to) => void (span.name = to),
        set: (more) => void (span.attributes = { ...span.attributes, ...more }),
        fail: (error) => void (span.error ??= error),
        end: () => void (span.isEnded = true),
      };
    },
  };
}
