import type { Bound } from "../../storage/store/bind-store.ts";
import type { putSession } from "../store/session-store.ts";
import { DomainError, invalidArgument } from "@millwright/errors";
import { randomToken } from "@millwright/ids";
import { isVersionAtLeast, WORKER_VERSION_MIN, type WorkerRegistration } from "../../runs/domain/worker-session.ts";

/** The identity of a worker key. */
export type WorkerKey = { readonly keyUid: string; /** Absent: a platform key. */ readonly teamUid?: string };

export type RegisterWorkerDeps = {
  /** Returns the identity of a key. Errors: key_invalid (unauthenticated), also for keys of other principals. */
  authenticateKey(key: string): Promise<WorkerKey>;
  /** Encrypts the key, which is checked again while the session is valid. */
  sealKey(key: string): string;
  readonly putSession: Bound<typeof putSession>;
};

const SLOTS_MAX = 1_000;

/**
 * Opens a session for a worker process. Returns its token.
 *
 * Errors: key_invalid (unauthenticated) · worker_too_old (conflict, with min_version) · worker_invalid
 * (invalid_argument).
 */
export async function registerWorker(
  deps: RegisterWorkerDeps,
  key: string,
  registration: WorkerRegistration,
): Promise<string> {
  const { keyUid, teamUid } = await deps.authenticateKey(key);
  checkRegistration(registration);
  const token = newSessionToken();
  await deps.putSession({ token, keyUid, sealedKey: deps.sealKey(key), teamUid, registration });
  return token;
}

export const newSessionToken = (): string => `mws_${randomToken(32)}`;

/** Validates a registration. Errors: worker_too_old · worker_invalid. */
export function checkRegistration(registration: WorkerRegistration): void {
  if (!isVersionAtLeast(registration.version, WORKER_VERSION_MIN)) {
    throw new DomainError({
      kind: "conflict",
      reason: "worker_too_old",
      message: `The worker has version ${registration.version}; it must be at least ${WORKER_VERSION_MIN}. Upgrade it.`,
      metadata: { min_version: WORKER_VERSION_MIN },
    });
  }
  if (
    !registration.workerHost ||
    !registration.instanceUid ||
    registration.slots < 0 ||
    registration.slots > SLOTS_MAX
  ) {
    throw invalidArgument("worker_invalid", `A worker must state its name and process, and 0 to ${SLOTS_MAX} slots.`);
  }
}
