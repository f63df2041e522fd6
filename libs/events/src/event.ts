import type { JsonObject } from "@bufbuild/protobuf";

/** A past fact, written in the transaction of its change. Never contains a secret, a prompt or an e-mail address. */
export type NewEvent = {
  /** `millwright.<entity>.<past-tense>.v<n>`, such as "millwright.run.created.v1". */
  type: string;
  /** Such as "run". Events of one entity are handled in order; if one is dead-lettered, the later ones wait behind it. */
  entity: string;
  entityUid: string;
  /** The entity's version after the change. */
  entityVersion: number;
  teamUid?: string;
  actor: { type: string; uid: string };
  requestId: string;
  /** The cause of the change, such as the uid of another entity or event. */
  cause?: string;
  /** W3C trace context of the cause. Absent: that of the current scope. */
  traceparent?: string;
  payload: JsonObject;
  /** Absent: the database's time of the transaction. */
  occurredAt?: Date;
};

/** An event in its owner's log. */
export type StoredEvent = NewEvent & { uid: string; position: number; occurredAt: Date };

/** A page of a log: its events after a position, in order, without gaps among the requested types. */
export type FeedPage = {
  /** Identifies the log; changes only when the log is replaced. */
  logUid: string;
  /** Newest position of the log; 0 when empty. */
  head: number;
  /** Oldest position that is retained, or the next one if there is none; absent if the source does not report it. */
  first?: number;
  /** Position of the end of the page: the next page starts after it. */
  through: number;
  events: StoredEvent[];
};

/** Which part of a log is read: at most `limit` events after a position, of all types or of some. */
export type FeedRange = {
  after: number;
  limit: number;
  waitMs?: number;
  types?: readonly string[];
  /** Ends the wait early with an empty page. */
  signal?: AbortSignal;
};

/** Reads a log after a position; waits up to `waitMs` for the first event. */
export type FeedReader = (range: FeedRange) => Promise<FeedPage>;
