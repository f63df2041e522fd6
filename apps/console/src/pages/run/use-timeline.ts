import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { openEventStream, type StreamState } from "../../api/event-stream.ts";
import type { ApiError } from "../../api/problem.ts";
import { Timeline, type RunEvent, type TextDelta } from "./timeline.ts";

type Live = {
  readonly timeline: Timeline;
  /** Increases with every change of the timeline. */
  readonly version: number;
  readonly state: StreamState;
  readonly error: ApiError | undefined;
};

/**
 * Reads all events of a run and then its live stream. The component must be keyed by the run. The stream ends with the run; `generation` opens it again after
 * the last event, for a run that a follow-up has continued.
 */
export function useTimeline(runId: string, generation: unknown): Live {
  const store = useMemo(createStore, []);
  const [state, setState] = useState<StreamState>("connecting");
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    setError(undefined);
    const { timeline } = store;
    return openEventStream({
      path: `/api/v1/agent/runs/${runId}/events`,
      after: timeline.lastSeq,
      onState: setState,
      onError: setError,
      onEvent({ event, data }) {
        if (event === "end") return;
        if (event === "text_delta") timeline.addText(JSON.parse(data) as TextDelta);
        else timeline.add(JSON.parse(data) as RunEvent);
        store.changed();
      },
    });
  }, [runId, store, generation]);
  const version = useSyncExternalStore(store.subscribe, store.version);
  return { timeline: store.timeline, version, state, error };
}

/** Holds a timeline. Notifies at most once per frame, because events of a long run arrive in thousands. */
function createStore() {
  const timeline = new Timeline();
  const listeners = new Set<() => void>();
  let version = 0;
  let frame: number | undefined;
  return {
    timeline,
    version: () => version,
    changed(): void {
      frame ??= requestAnimationFrame(() => {
        frame = undefined;
        version += 1;
        for (const listener of listeners) listener();
      });
    },
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
