/** What its owner and the operator say about a team, agent or factory in the queue. */
export type QueueSettings = {
  /** Executions at once; 0 = the platform's default. */
  readonly concurrencyLimit: number;
  /** Nothing new is started; what runs goes on. */
  readonly isPaused: boolean;
  /** Of a team: its share beside other teams, in proportion to theirs. */
  readonly weight: number;
  /** Of an agent: its place among the team's runs of the same depth; see PRIORITY_STEP_MS. */
  readonly priority: number;
  /** Of the record these come from: older ones do not replace newer ones. */
  readonly version: number;
};

/** A level of priority counts as this much time in the queue. So every run's turn comes, whatever its priority. */
export const PRIORITY_STEP_MS = 5 * 60_000;

/** Work that no one waits for: judges and benchmark trials. */
const BACKGROUND_SOURCES: readonly string[] = ["RUN_SCORER", "BENCHMARK_TRIAL"];

/** Whether runs of a source give way to the other runs of their owner. */
export const isBackground = (source: string): boolean => BACKGROUND_SOURCES.includes(source);

/** Background runs are served as if they had been queued this much later, so that they give way and still get their turn. */
export const BACKGROUND_DELAY_MS = 6 * PRIORITY_STEP_MS;

export const DEFAULT_QUEUE_SETTINGS: QueueSettings = {
  concurrencyLimit: 0,
  isPaused: false,
  weight: 1,
  priority: 0,
  version: 0,
};

/** The settings of everything whose capacity an execution uses. */
export type ScopeSettings = {
  readonly team: QueueSettings;
  readonly agent: QueueSettings;
  readonly factory: QueueSettings;
};

/** How many executions run at once where a scope has no limit of its own. */
export type CapacityDefaults = { readonly team: number; readonly agent: number; readonly factory: number };
