import { expect, test } from "@jest/globals";
import { isSpanContextValid, TraceFlags } from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";
import { formatTraceparent, newTraceContext, parseTraceparent, type TraceContext } from "./index.ts";

const [TRACE, SPAN] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];

const CASES: readonly (readonly [text: string | undefined, context: TraceContext | undefined])[] = [
  [`00-${TRACE}-${SPAN}-01`, { traceId: TRACE, spanId: SPAN, isSampled: true }],
  [`00-${TRACE}-${SPAN}-00`, { traceId: TRACE, spanId: SPAN, isSampled: false }],
  [`00-${TRACE}-${SPAN}-03`, { traceId: TRACE, spanId: SPAN, isSampled: true }],
  [`cc-${TRACE}-${SPAN}-01-what-the-future-brings`, { traceId: TRACE, spanId: SPAN, isSampled: true }],
  [`00-${TRACE}-${SPAN}-01-more`, undefined],
  [`ff-${TRACE}-${SPAN}-01`, undefined],
  [`00-${"0".repeat(32)}-${SPAN}-01`, undefined],
  [`00-${TRACE}-${"0".repeat(16)}-01`, undefined],
  [`00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
  ["nonsense", undefined],
  ["", undefined],
  [undefined, undefined],
];

test.each(CASES)("the traceparent %j is %j", (text, expected) => expect(parseTraceparent(text)).toEqual(expected));

test.each(CASES)("the traceparent %j is parsed as OpenTelemetry does", (text) => {
  const theirs = parseTraceParent(text ?? "");
  const context = theirs && isSpanContextValid(theirs) ? theirs : undefined;
  expect(parseTraceparent(text)).toEqual(
    context && {
      traceId: context.traceId,
      spanId: context.spanId,
      isSampled: (context.traceFlags & TraceFlags.SAMPLED) !== 0,
    },
  );
});

test("a context is sent unchanged; a new one is valid, unrecorded and unique", () => {
  const context = { traceId: TRACE, spanId: SPAN, isSampled: true };
  expect(parseTraceparent(formatTraceparent(context))).toEqual(context);
  const [one, other] = [newTraceContext(), newTraceContext()];
  expect(parseTraceparent(formatTraceparent(one))).toEqual(one);
  expect([one.isSampled, one.traceId === other.traceId]).toEqual([false, false]);
});
