import type { EgressSettings } from "../egress/policy.ts";
import type { Cgroups } from "./cgroups.ts";
import { DEFAULT_LIMITS, type Limits, type LimitSettings } from "./limits.ts";

export type SandboxKind = "bwrap" | "none";

/** The sandbox capabilities of this machine, determined once when the worker starts. */
export type SandboxHost = {
  readonly kind: SandboxKind;
  readonly limits: LimitSettings;
  /** The start timeout of a sandbox in milliseconds. Default: 15 s. */
  readonly startTimeoutMs?: number;
  /** Absent: limits apply to each process, and the totals are checked periodically. */
  readonly cgroups?: Cgroups;
  /** Set if the worker is root: the host users that sandboxes of executions run as. */
  readonly users?: UserPool;
  /** The hosts that runs may connect to; absent: none. */
  readonly egress?: EgressSettings;
  /** The image that contains the machine's own tools, if it is one. */
  readonly ownImage?: string;
  /** Root file systems by image name. Other images get the machine's own tools. */
  readonly rootfs?: ReadonlyMap<string, string>;
  /** The third-party agent programs that the operator has provided, by harness type. */
  readonly harnesses?: ReadonlyMap<string, HarnessProgram>;
};

/** `directory`: a host directory that sandboxes see at `HARNESS`. `file`: the program in it. */
export type HarnessProgram = { readonly directory: string; readonly file: string; readonly version: string };

/** The directory of a third-party agent program inside a sandbox. */
export const HARNESS = "/.millwright/harness";

/** Host users that run only sandboxes; each is used for one execution directory at a time. */
export type UserPool = { readonly take: (directory: string) => number; readonly give: (directory: string) => void };

/** Returns a host with default limits and no other capabilities, for probing and tests. */
export const bareHost = (kind: SandboxKind): SandboxHost => ({ kind, limits: DEFAULT_LIMITS });

export const hostOf = ({ kind, host }: { readonly kind: SandboxKind; readonly host?: SandboxHost }): SandboxHost =>
  host ?? bareHost(kind);

/** A host directory that is mounted in a sandbox. */
export type Mount = { readonly source: string; readonly target: string; readonly writable: boolean };

/** `socket`: a Unix socket on the host. Other files in its directory are also visible in the sandbox. */
export type Relay = { readonly port: number; readonly socket: string };

/** The complete description of a sandbox. */
export type SandboxSpec = {
  readonly host: SandboxHost;
  /** The temporary directory of this sandbox on the host, accessible only to the worker. */
  readonly dir: string;
  readonly mounts: readonly Mount[];
  /**
   * The only network access of the sandbox: ports of its loopback interface that are forwarded to sockets of the
   * worker. Unused for kind `none`, which has the machine's network.
   */
  readonly relays?: readonly Relay[];
  /** The complete environment of every command, in addition to PATH, HOME, LANG and similar variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: Limits;
  /** Values of `env` that must be masked in outputs. */
  readonly secrets?: readonly string[];
  /** The directory of the root file system; absent: the machine's own tools. */
  readonly rootfs?: string;
  /** The host user; absent: the worker's own. */
  readonly uid?: number;
};

/** The port of the worker's proxy inside a sandbox. */
export const PROXY_PORT = 3_128;
/** The port of the worker's model gateway inside a sandbox, for harnesses. */
export const GATEWAY_PORT = 3_129;

/** The directories of the agent's files inside a sandbox. */
export const WORKSPACE = "/workspace";
export const HOME = "/home/agent";
/** The directory of files from the worker for a platform script, such as bundles and snapshots; read-only inside. */
export const INBOX = "/run/millwright/inbox";
/**
 * The directory of files from a platform script for the worker. Only that sandbox can access it, and the worker reads
 * it after the sandbox has ended.
 */
export const OUTBOX = "/run/millwright/outbox";
