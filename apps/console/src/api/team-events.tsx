import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from "react";
import { useQueryClient } from "@tanstack/react-query";
import type { components } from "../gen/api.ts";
import { openEventStream, type StreamState } from "./event-stream.ts";

export type TeamEvent = components["schemas"]["TeamEvent"];
type Listener = (event: TeamEvent) => void;
type TeamEvents = { readonly state: StreamState; readonly subscribe: (listener: Listener) => () => void };

const Context = createContext<TeamEvents>({ state: "connecting", subscribe: () => () => {} });

/** Lists are refetched at most this often while events arrive. */
const REFRESH_MS = 1_000;

/**
 * Opens the event stream of the active team once for the whole console. Every event marks the queries of its run, the
 * run lists and the task boards as stale, so that visible ones are refetched.
 */
export function TeamEventsProvider({ team, children }: { team: string | undefined; children: ReactNode }): ReactNode {
  const queries = useQueryClient();
  const [state, setState] = useState<StreamState>("connecting");
  const listeners = useMemo(() => new Set<Listener>(), []);

  useEffect(() => {
    const changed = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = (): void => {
      timer = undefined;
      for (const runId of changed) void queries.invalidateQueries({ queryKey: ["run", runId] });
      changed.clear();
      void queries.invalidateQueries({ queryKey: ["runs"] });
      void queries.invalidateQueries({ queryKey: ["tasks"] });
    };
    const close = openEventStream({
      path: "/api/v1/agent/events",
      onState: setState,
      onEvent({ event, data }) {
        if (event !== "open") {
          const teamEvent = JSON.parse(data) as TeamEvent;
          changed.add(teamEvent.run_id);
          for (const listener of listeners) listener(teamEvent);
        }
        timer ??= setTimeout(refresh, REFRESH_MS);
      },
      onError: () => void queries.invalidateQueries({ queryKey: ["whoami"] }),
    });
    return () => {
      clearTimeout(timer);
      close();
    };
  }, [team, queries, listeners]);

  const value = useMemo<TeamEvents>(
    () => ({
      state,
      subscribe(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    }),
    [state, listeners],
  );
  return <Context.Provider value={value}>{children}</Context.Provider>;
}

/** Returns whether the list pages are live. */
export const useLiveState = (): StreamState => useContext(Context).state;

/** Calls the listener for every run event of the team. The listener must be stable (`useCallback`). */
export function useTeamEvents(listener: Listener): void {
  const { subscribe } = useContext(Context);
  useEffect(() => subscribe(listener), [subscribe, listener]);
}
