import type { Caller } from "@millwright/caller";

/** Context of a request from its entry point on; passed as an argument and in headers, never in globals. */
export type RequestContext = {
  readonly requestId: string;
  /** 32 lower-case hex digits (W3C trace context). */
  readonly traceId: string;
  /** Absent until the caller is authenticated. */
  readonly caller?: Caller;
  /** The deadline of the response. */
  readonly deadline?: Date;
};
