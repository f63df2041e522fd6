/** The members that identify a repeated request. */
export type OnceRequest = {
  readonly principalUid: string;
  readonly operation: string;
  /** Idempotency key; absent: every call is executed. */
  readonly key: string | undefined;
  /** JSON. A different body with the same key is refused. */
  readonly body: unknown;
};
