import { randomHex } from "@millwright/ids";

/** The trace of something, and the span in which it happens (W3C trace context). */
export type TraceContext = {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  /** Whether an upstream caller records this trace. */
  readonly isSampled: boolean;
};

/** The header, and the name of the columns and fields with its text. */
export const TRACEPARENT = "traceparent";

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Parses a `traceparent`; undefined if it is absent or invalid. Later versions are parsed as far as known. */
export function parseTraceparent(text: string | null | undefined): TraceContext | undefined {
  const [, version, traceId = "", spanId = "", flags = "", more] = FORM.exec(text ?? "") ?? [];
  const isValid =
    version !== undefined &&
    version !== "ff" &&
    (version !== "00" || more === undefined) &&
    !/^0+$/.test(traceId) &&
    !/^0+$/.test(spanId);
  return isValid ? { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 } : undefined;
}

export const formatTraceparent = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;

/** Starts a trace that is not recorded: its id still correlates log lines. */
export function newTraceContext(): TraceContext {
  return { traceId: randomHex(16), spanId: randomHex(8), isSampled: false };
}
