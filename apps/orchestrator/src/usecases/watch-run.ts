import type { Caller } from "@millwright/caller";
import type { RunEvent } from "../domain/run-events.ts";
import type { LiveText, LiveTexts } from "../live-texts.ts";
import { watchRunEvents, type WatchRunEventsDeps } from "./watch-run-events.ts";

export type WatchRunDeps = WatchRunEventsDeps & { readonly liveTexts: Pick<LiveTexts, "listen"> };

/** A reader that takes nothing keeps so many pieces of text at most. */
const TEXTS_MAX = 64;

/**
 * The events of a run as `watchRunEvents` has them, and between them what its model is just saying. An empty part keeps the connection alive.
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
  const ended = new AbortController(); // the reader has gone
  const events = watchRunEvents(deps, caller, runUid, afterSeq, AbortSignal.any([signal, ended.signal]));
  try {
    for (let next = nextOf(events); ;) {
      const rung = new Promise<"text">((resolve) => (wake = () => resolve("text")));
      if (texts.length > 0) {
        yield { events: [], texts: texts.splice(0) };
        continue;
      }
      const part = await Promise.race([next, rung]);
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

/** It may fail while nobody waits for it; who waits next is told. */
function nextOf<T>(events: AsyncGenerator<T>): Promise<IteratorResult<T, void>> {
  const next = events.next() as Promise<IteratorResult<T, void>>;
  next.catch(() => undefined);
  return next;
}
