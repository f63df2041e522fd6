import type { orchestrator } from "@millwright/contracts";
import { SSE_KEEP_ALIVE, sseEvent } from "./server-sent-events.ts";

type EventJson = { readonly seq: number; readonly kind: string };

/**
 * Run events as server-sent events: `id` is the seq, so that `Last-Event-ID` resumes without gap or repeat. What a model is just saying comes
 * between them as `text_delta`, without an id: it is told once, or not at all. Keep-alives are comments. A failing source ends the stream without `event: end`, which makes the client come back. So does `assertVisible`,
 * which is asked before anything more is told: a revoked key sees nothing further.
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
