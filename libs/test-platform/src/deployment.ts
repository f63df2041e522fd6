/** Options of a platform under test. */
export type DeploymentOptions = {
  /** Number of worker processes; the default depends on the deployment. */
  workers?: number;
  /** Slots of each worker; default 4. */
  slots?: number;
  /** Divisor of lease durations, offer timeouts and heartbeat intervals. */
  timeScale?: number;
  /**
   * Additional environment variables of the services, such as a bucket URL for files. Workers receive only the
   * OpenTelemetry, harness and retained workspace variables.
   */
  env?: Readonly<Record<string, string>>;
  /** Command that starts the standalone platform, such as bubblewrap with its options. */
  wrapper?: readonly string[];
};

/** A platform of real processes: standalone or a cluster. It keeps its address when it is restarted. */
export type Deployment = {
  /** Base URL for users and workers. */
  readonly url: string;
  /** Directory of all files of the platform; tests may put files there too. */
  readonly dir: string;
  readonly timeScale: number;
  /** True if processes of the platform are killed while it is used, so that clients must retry. */
  readonly hasChaos: boolean;
  /**
   * Returns the path of a file or directory of this platform. The platform's own files are below `data`, repositories
   * for it below `repositories`.
   */
  path(...names: string[]): string;
  /** Returns the latest output of its processes, for test failure messages. */
  output(): string;
  /** Sends SIGKILL to everything at once: services, workers, their sandboxes, the database. */
  killEverything(): Promise<void>;
  /** Starts the platform again on the same directory. Resolves when it is ready. */
  start(): Promise<void>;
  /**
   * Stops the platform as Ctrl-C does; may be called repeatedly. Returns the names of processes that did not exit in
   * time, by themselves, with code 0.
   */
  stop(): Promise<string[]>;
  /** Stops the platform and removes its directory. */
  remove(): Promise<void>;
};

/** API key of the first team's owner on every platform of these tests. */
export const OWNER_KEY = "mw_the-owners-key-of-the-system-tests";
