export type SandboxKind = "bwrap" | "none";

/** A directory of the host that a sandbox sees. */
export type Mount = { readonly source: string; readonly target: string; readonly writable: boolean };

/** What a sandbox is made of. */
export type SandboxSpec = {
  readonly kind: SandboxKind;
  /** Scratch directory of this sandbox on the host, ours alone. */
  readonly dir: string;
  readonly mounts: readonly Mount[];
  /** Shared with the host; only for the short sandbox that pushes to a remote code host. */
  readonly network: boolean;
  /** Complete environment of every command, besides the ordinary PATH, HOME, LANG and so on. */
  readonly env: Readonly<Record<string, string>>;
};

/** Where the agent's files are inside. */
export const WORKSPACE = "/workspace";
export const HOME = "/home/agent";
/** Files that pass between worker and sandbox, such as snapshots. */
export const EXCHANGE = "/run/millwright";
