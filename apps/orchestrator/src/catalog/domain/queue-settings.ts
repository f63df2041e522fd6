/** The queue settings of a team, agent or factory, set by its owner and the operator. */
export type QueueSettings = {
  /** Maximum number of concurrent executions; 0 = the platform's default. */
  readonly concurrencyLimit: number;
  /** True: no execution is started; active executions continue. */
  readonly isPaused: boolean;
  /** Of a team: its share of workers, in proportion to the weights of other teams. */
  readonly weight: number;
  /** Of an agent: its priority among the team's runs of the same depth; see PRIORITY_STEP_MS. */
  readonly priority: number;
  /** Version of the record that contains the settings. Older settings do not replace newer ones. */
  readonly version: number;
};

/**
 * One level of priority counts as this much time in the queue, so that every run is eventually claimed, at any
 * priority.
 */
export const PRIORITY_STEP_MS = 5 * 60_000;

/** Sources of background runs, for which no one waits: judges and benchmark trials. */
const BACKGROUND_SOURCES: readonly string[] = ["RUN_SCORER", "BENCHMARK_TRIAL"];

/** Returns whether runs of a source yield to the other runs of their owner. */
export const isBackground = (source: string): boolean => BACKGROUND_SOURCES.includes(source);

/**
 * Background runs are ordered as if they had been queued this much later, so that they yield and are still eventually
 * claimed.
 */
export const BACKGROUND_DELAY_MS = 6 * PRIORITY_STEP_MS;

export const DEFAULT_QUEUE_SETTINGS: QueueSettings = {
  concurrencyLimit: 0,
  isPaused: false,
  weight: 1,
  priority: 0,
  version: 0,
};

/** The settings of all scopes whose capacity an execution uses. */
export type ScopeSettings = {
  readonly team: QueueSettings;
  readonly agent: QueueSettings;
  readonly factory: QueueSettings;
};

/** Maximum number of concurrent executions of a scope that has no limit of its own. */
export type CapacityDefaults = { readonly team: number; readonly agent: number; readonly factory: number };

/** A worker connection without a heartbeat for this many seconds is not shown. */
export const WORKER_SHOWN_SECONDS = 45;
