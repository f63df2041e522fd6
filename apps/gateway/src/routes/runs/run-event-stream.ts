import type { orchestrator } from "@millwright/contracts";
import { SSE_KEEP_ALIVE, sseEvent } from "../formats/server-sent-events.ts";

type EventJson = { readonly seq: number; readonly kind: string };

/**
 * Yields run events as server-sent events.
 *
 * - `id` is the event's seq, so that `Last-Event-ID` resumes without gaps or duplicates.
 * - `text_delta` events carry the text that a model is currently generating. They have no `id` and are delivered at
 * most once.
 * - Keep-alives are comments.
 * - `assertVisible` runs before each batch. If it throws, or if the source fails, the stream ends without `event: end`,
 * so that the client reconnects. A revoked key therefore receives no further events.
 */
export async function* eventStream(
  watched: AsyncIterable<orchestrator.WatchRunEventsResponse>,
  toJson: (event: orchestrator.RunEvent) => EventJson,
  assertVisible: () => Promise<unknown>,
): AsyncGenerator<string> {
  yield ": open\n\n";
  try {
    for await (const { events, texts } of watched) {
      await assertVisible();
      for (const { executionId, attempt, stepId, offset, text } of texts) {
        yield `event: text_delta\ndata: ${JSON.stringify({ execution_id: Number(executionId), attempt, step_id: stepId, offset, text })}\n\n`;
      }
      if (events.length === 0 && texts.length === 0) yield SSE_KEEP_ALIVE;
      for (const event of events) {
        const json = toJson(event);
        yield sseEvent(json.seq, json.kind, json);
      }
    }
  } catch {
    return;
  }
  yield "event: end\ndata: {}\n\n";
}
