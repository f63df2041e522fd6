import type { Caller } from "@millwright/caller";

/** What is known about a request from its door on; travels as an argument and in headers, never in globals. */
export type RequestContext = {
  readonly requestId: string;
  /** 32 lower-case hex digits (W3C trace context). */
  readonly traceId: string;
  /** Absent until, and unless, the caller is known. */
  readonly caller?: Caller;
  /** When the answer stops being of use. */
  readonly deadline?: Date;
};
