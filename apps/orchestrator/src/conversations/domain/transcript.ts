import type { RunEvent } from "../../runs/domain/run-events.ts";

/** The media type of transcripts of the built-in harness: JSON Lines, one event per line. */
export const TRANSCRIPT_TYPE = "application/x-ndjson";

/**
 * Returns one line of a transcript, with its line break. Transcripts are complete: events of superseded attempts are
 * included and marked.
 */
export const transcriptLine = (event: RunEvent): string =>
  `${JSON.stringify({
    seq: event.seq,
    kind: event.kind,
    occurred_at: event.occurredAt.toISOString(),
    execution_id: event.executionId,
    attempt: event.attempt,
    superseded: event.isSuperseded || undefined,
    payload: event.payload,
  })}\n`;
