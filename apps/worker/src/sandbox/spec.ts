import type { EgressSettings } from "../egress/policy.ts";
import type { Cgroups } from "./cgroups.ts";
import { DEFAULT_LIMITS, type Limits, type LimitSettings } from "./limits.ts";

export type SandboxKind = "bwrap" | "none";

/** What this machine offers to sandboxes, found out once when the worker starts. */
export type SandboxHost = {
  readonly kind: SandboxKind;
  readonly limits: LimitSettings;
  /** A sandbox that has not answered after this many milliseconds is given up. Default: 15 s. */
  readonly startTimeoutMs?: number;
  /** Absent: limits are put on each process, and the whole is watched. */
  readonly cgroups?: Cgroups;
  /** A worker that is root runs the sandboxes of an execution as one of these users outside. */
  readonly users?: UserPool;
  /** What runs may reach; absent: nothing. */
  readonly egress?: EgressSettings;
  /** The image whose tools the machine's own are, if it is one. */
  readonly ownImage?: string;
  /** Root file systems by image name; other images get the machine's own tools. */
  readonly rootfs?: ReadonlyMap<string, string>;
  /** Agent programs of others that the operator has provided, by their type. */
  readonly harnesses?: ReadonlyMap<string, HarnessProgram>;
};

/** `directory`: on the host, seen in sandboxes under `HARNESS`; `file`: the program in it. */
export type HarnessProgram = { readonly directory: string; readonly file: string; readonly version: string };

/** Where an agent program of others is inside. */
export const HARNESS = "/.millwright/harness";

/** Users outside that run nothing but sandboxes; one per execution directory at a time. */
export type UserPool = { readonly take: (directory: string) => number; readonly give: (directory: string) => void };

/** A machine without anything but the kind; for probing and tests. */
export const bareHost = (kind: SandboxKind): SandboxHost => ({ kind, limits: DEFAULT_LIMITS });

export const hostOf = ({ kind, host }: { readonly kind: SandboxKind; readonly host?: SandboxHost }): SandboxHost =>
  host ?? bareHost(kind);

/** A directory of the host that a sandbox sees. */
export type Mount = { readonly source: string; readonly target: string; readonly writable: boolean };

/** `socket`: a unix socket on the host; whatever else lies in its directory is seen too. */
export type Relay = { readonly port: number; readonly socket: string };

/** What a sandbox is made of. */
export type SandboxSpec = {
  readonly host: SandboxHost;
  /** Scratch directory of this sandbox on the host, ours alone. */
  readonly dir: string;
  readonly mounts: readonly Mount[];
  /** Its only ways out: ports of its own loopback that lead to sockets of the worker. Nothing of kind `none`, which has the machine's network. */
  readonly relays?: readonly Relay[];
  /** Complete environment of every command, besides the ordinary PATH, HOME, LANG and so on. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: Limits;
  /** Values of `env` that no output may show. */
  readonly secrets?: readonly string[];
  /** Directory with the root file system; absent: the machine's own tools. */
  readonly rootfs?: string;
  /** User outside; absent: the worker's own. */
  readonly uid?: number;
};

/** Where a sandbox reaches the worker's proxy. */
export const PROXY_PORT = 3_128;
/** Where a harness in it reaches the worker's gateway to its model. */
export const GATEWAY_PORT = 3_129;

/** Where the agent's files are inside. */
export const WORKSPACE = "/workspace";
export const HOME = "/home/agent";
/** Files from the worker for a script of the platform, such as bundles and snapshots; read-only inside. */
export const INBOX = "/run/millwright/inbox";
/** Files from a script of the platform for the worker; seen by that one sandbox, and read when it is gone. */
export const OUTBOX = "/run/millwright/outbox";
