import type { Caller } from "@millwright/caller";
import type { RunEvent } from "../domain/run-events.ts";
import type { LiveText, LiveTexts } from "../live-texts.ts";
import { watchRunEvents, type WatchRunEventsDeps } from "./watch-run-events.ts";

export type WatchRunDeps = WatchRunEventsDeps & { readonly liveTexts: Pick<LiveTexts, "listen"> };

/** Maximum number of texts that are buffered for a slow reader. Further texts are dropped. */
const TEXTS_MAX = 64;

/**
 * Yields the events of a run as `watchRunEvents` does, and between them the text that its model is generating. An empty
 * part is a keep-alive.
 *
 * Errors: as `watchRunEvents`.
 */
export async function* watchRun(
  deps: WatchRunDeps,
  caller: Caller,
  runUid: string,
  afterSeq: number,
  signal: AbortSignal,
): AsyncGenerator<{ readonly events: readonly RunEvent[]; readonly texts: readonly LiveText[] }> {
  const run = await deps.getVisibleRun(caller, runUid);
  const texts: LiveText[] = [];
  let wake = (): void => {};
  const stop = deps.liveTexts.listen(run.uid, (text) => {
    if (texts.length < TEXTS_MAX) texts.push(text);
    wake();
  });
  const ended = new AbortController(); // aborted when the reader disconnects
  const events = watchRunEvents(deps, caller, runUid, afterSeq, AbortSignal.any([signal, ended.signal]));
  try {
    for (let next = nextOf(events); ;) {
      const textPublished = new Promise<"text">((resolve) => (wake = () => resolve("text")));
      if (texts.length > 0) {
        yield { events: [], texts: texts.splice(0) };
        continue;
      }
      const part = await Promise.race([next, textPublished]);
      if (part === "text") continue;
      if (part.done) return;
      next = nextOf(events);
      yield { events: part.value, texts: [] };
    }
  } finally {
    stop();
    ended.abort();
  }
}

/**
 * Requests the next batch. It may reject while nothing awaits it; the error is then thrown to the next caller that
 * awaits it.
 */
function nextOf<T>(events: AsyncGenerator<T>): Promise<IteratorResult<T, void>> {
  const next = events.next() as Promise<IteratorResult<T, void>>;
  next.catch(() => undefined);
  return next;
}
