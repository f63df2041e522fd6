import type { RepositorySkill } from "./skill-spec.ts";

/** A worker process that has registered. */
export type WorkerSession = {
  readonly uid: string;
  /** Shown as worker_host; several processes may share one. */
  readonly workerHost: string;
  /** Absent: serves every team's unrouted runs. */
  readonly teamUid?: string;
  readonly keyUid: string;
  readonly state: "READY" | "DRAINING";
  readonly harnessTypes: readonly string[];
  /** Images it can run; none: it takes any, with what its host has. */
  readonly images: readonly string[];
  /** Architecture of its machine; absent: not known, it takes runs of any. */
  readonly arch?: string;
};

export type LeaseRef = { readonly executionId: number; readonly attempt: number };

/** What has become of a dispatched execution. WAITING: nobody has taken it yet · TAKEN · ENDED: that attempt is over in order · LOST: it was given up. `isStopping`: it is, or was, cancelled. */
export type DispatchStatus = LeaseRef & {
  readonly status: "WAITING" | "TAKEN" | "ENDED" | "LOST";
  readonly isStopping: boolean;
};

/** A live lease that is open to an offer token. */
export type OfferedLease = {
  /** Somebody has brought the token already: `holder` names that process. */
  readonly isTaken: boolean;
  readonly holder: string;
  readonly dispatcher: {
    readonly keyUid: string;
    readonly sealedKey: string;
    readonly teamUid?: string;
    readonly workerHost: string;
  };
};

/** What a worker says about itself when it registers. */
export type WorkerRegistration = {
  readonly workerHost: string;
  readonly instanceUid: string;
  readonly version: string;
  readonly backend: string;
  readonly slots: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly harnesses: readonly { readonly type: string; readonly version: string }[];
  readonly models: readonly string[];
  readonly images: readonly string[];
  readonly arch?: string;
  readonly sandbox: string;
  readonly sandboxFeatures: readonly string[];
  /** On its machine. */
  readonly skills: readonly RepositorySkill[];
};

/** The oldest worker this server talks to. */
export const WORKER_VERSION_MIN = "0.1.0";

/** Compares dotted versions by number; what follows a hyphen is left out. A version that is none is too old. */
export function isVersionAtLeast(version: string, min: string): boolean {
  const parts = (text: string): number[] => (text.split("-")[0] ?? "").split(".").map(Number);
  const [given, wanted] = [parts(version), parts(min)];
  if (given.some(Number.isNaN)) return false;
  for (let n = 0; n < Math.max(given.length, wanted.length); n++) {
    const difference = (given[n] ?? 0) - (wanted[n] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/** An execution that is held open for a session until it accepts, or the offer expires. */
export type Offer = LeaseRef & { readonly expiresAt: Date };
