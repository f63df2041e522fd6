import type { RepositorySkill } from "../../catalog/domain/skill-spec.ts";
import type { RunRef } from "./run-token.ts";

/** A registered worker process. */
export type WorkerSession = {
  readonly uid: string;
  /** Published as `worker_host`; several processes may share one. */
  readonly workerHost: string;
  /** Absent: serves the runs of every team that name no worker host. */
  readonly teamUid?: string;
  readonly keyUid: string;
  readonly state: "READY" | "DRAINING";
  readonly harnessTypes: readonly string[];
  /** Images it can run; empty: it accepts runs of any image and runs them with what its host provides. */
  readonly images: readonly string[];
  /** Architecture of its machine; absent: unknown, so it accepts runs of any. */
  readonly arch?: string;
};

export type LeaseRef = { readonly executionId: number; readonly attempt: number };

/** A lease that was renewed by a heartbeat. */
export type RenewedLease = LeaseRef & { readonly expiresAt: Date; readonly isStopping: boolean; readonly run: RunRef };

/**
 * The status of a dispatched execution. WAITING: no process has taken it over yet · TAKEN: a process owns it · ENDED:
 * the attempt has ended · LOST: the attempt has lost its lease. `isStopping`: it is being or was cancelled.
 */
export type DispatchStatus = LeaseRef & {
  readonly status: "WAITING" | "TAKEN" | "ENDED" | "LOST";
  readonly isStopping: boolean;
};

/** A live lease that an offer token can take over. */
export type OfferedLease = {
  /** True if a process has already taken it over; `owner` is the instance uid of the owning process. */
  readonly isTaken: boolean;
  readonly owner: string;
  readonly dispatcher: {
    readonly keyUid: string;
    readonly sealedKey: string;
    readonly teamUid?: string;
    readonly workerHost: string;
  };
};

/** The data that a worker reports when it registers. */
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
  /** Skills on its machine. */
  readonly skills: readonly RepositorySkill[];
};

/** The minimum version of workers that this server supports. */
export const WORKER_VERSION_MIN = "0.1.0";

/**
 * Returns whether a dotted version is at least `min`, compared by number. Text after a hyphen is ignored. A malformed
 * version is too old.
 */
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

/** An execution that is offered to a session until it accepts or the offer expires. */
export type Offer = LeaseRef & { readonly expiresAt: Date };
