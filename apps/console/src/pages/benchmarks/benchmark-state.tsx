import type { ReactNode } from "react";
import type { components } from "../../gen/api.ts";

type State = components["schemas"]["BenchmarkRunState"] | components["schemas"]["BenchmarkTrial"]["state"];

const LOOKS: Readonly<Record<State, string>> = {
  pending: "",
  running: "busy",
  scoring: "busy",
  succeeded: "good",
  completed: "good",
  failed: "bad",
  cancelled: "",
};

export const isFinished = (state: State): boolean => /^(?:completed|failed|cancelled)$/.test(state);

/** The state of a benchmark run or of a trial. */
export const BenchmarkState = ({ state }: { state: State }): ReactNode => (
  <span className={`badge ${LOOKS[state]}`}>{state}</span>
);
