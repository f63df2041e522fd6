/** What of a platform a test may ask for. */
export type DeploymentOptions = {
  /** Worker processes; each deployment has its own default. */
  workers?: number;
  /** Per worker; default 4. */
  slots?: number;
  /** Divides leases, offers and heartbeats. */
  timeScale?: number;
  /** More settings, for its services, such as a bucket for files; OpenTelemetry's, those of harnesses and that of kept workspaces for the workers too. */
  env?: Readonly<Record<string, string>>;
  /** A command that starts the standalone platform, such as bubblewrap with its options. */
  wrapper?: readonly string[];
};

/** A platform of real processes, whatever it consists of. It keeps its address when it is started again. */
export type Deployment = {
  /** Where users and workers go. */
  readonly url: string;
  /** Everything of it lies here; a place for the test's files too. */
  readonly dir: string;
  readonly timeScale: number;
  /** Parts of it die while it is used: whoever uses it must ask again. */
  readonly isUnderFire: boolean;
  /** A file or directory of this platform. The platform's own are below `data`, repositories for it below `repositories`. */
  path(...names: string[]): string;
  /** What it wrote last, for the messages of tests. */
  output(): string;
  /** SIGKILL to everything at once: services, workers, their sandboxes, the database. */
  killEverything(): Promise<void>;
  /** Starts it again on the same directory; answers when it is ready. */
  start(): Promise<void>;
  /** As Ctrl-C does; may be called again. Answers the names of processes that did not stop in time, by themselves, with exit code 0. */
  stop(): Promise<string[]>;
  /** Ends it and leaves nothing behind. */
  remove(): Promise<void>;
};

/** The key of the first team's owner on every platform of these tests. */
export const OWNER_KEY = "mw_the-owners-key-of-the-system-tests";
