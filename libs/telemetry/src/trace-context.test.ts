import { expect, test } from "@jest/globals";
import { formatTraceparent, newTraceContext, parseTraceparent } from "./index.ts";

const [TRACE, SPAN] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];

test.each([
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
])("the traceparent %j is %j", (text, expected) => expect(parseTraceparent(text)).toEqual(expected));

test("a context is sent unchanged; a new one is valid, unrecorded and unique", () => {
  const context = { traceId: TRACE, spanId: SPAN, isSampled: true };
  expect(parseTraceparent(formatTraceparent(context))).toEqual(context);
  const [one, other] = [newTraceContext(), newTraceContext()];
  expect(parseTraceparent(formatTraceparent(one))).toEqual(one);
  expect([one.isSampled, one.traceId === other.traceId]).toEqual([false, false]);
});
