import type { RunEvent } from "./run-events.ts";

/** The media type of transcripts of the own harness: JSON Lines, one event each (fields-runs §6.9). */
export const TRANSCRIPT_TYPE = "application/x-ndjson";

/** One line of a transcript, with its line break. The record is whole: what a replaced attempt wrote is in it, marked. */
export const transcriptLine = (event: RunEvent): string =>
  `${JSON.stringify({
    seq: event.seq,
    kind: event.kind,
    occurred_at: event.occurredAt.toISOString(),
    ...(event.executionId === undefined ? {} : { execution_id: event.executionId }),
    ...(event.attempt === undefined ? {} : { attempt: event.attempt }),
    ...(event.isSuperseded ? { superseded: true } : {}),
    payload: event.payload,
  })}\n`;
