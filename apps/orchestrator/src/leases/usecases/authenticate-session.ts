import { DomainError, isDomainError } from "@millwright/errors";
import type { WorkerSession } from "../../runs/domain/worker-session.ts";
import type { WorkerKey } from "./register-worker.ts";

export type AuthenticateSessionDeps = {
  findSession(
    token: string,
  ): Promise<{ session: WorkerSession; sealedKey: string; isKeyCheckDue: boolean } | undefined>;
  openKey(sealed: string): string;
  authenticateKey(key: string): Promise<WorkerKey>;
  markKeyChecked(sessionUid: string): Promise<void>;
  endSession(sessionUid: string): Promise<void>;
};

/**
 * Returns the session of a token. The worker key of the session is checked again periodically, so a revoked key ends
 * its sessions within a minute. While the identity service is unavailable, sessions remain valid.
 *
 * Errors: session_invalid (unauthenticated): the worker must register again.
 */
export async function authenticateSession(deps: AuthenticateSessionDeps, token: string): Promise<WorkerSession> {
  const found = token === "" ? undefined : await deps.findSession(token);
  if (!found) throw sessionInvalid();
  if (found.isKeyCheckDue) await checkKey(deps, found.session, found.sealedKey);
  return found.session;
}

async function checkKey(deps: AuthenticateSessionDeps, session: WorkerSession, sealedKey: string): Promise<void> {
  try {
    const { keyUid, teamUid } = await deps.authenticateKey(deps.openKey(sealedKey));
    if (keyUid !== session.keyUid || teamUid !== session.teamUid) throw sessionInvalid();
    await deps.markKeyChecked(session.uid);
  } catch (error) {
    if (!isDomainError(error) || error.kind !== "unauthenticated") return;
    await deps.endSession(session.uid);
    throw sessionInvalid();
  }
}

const sessionInvalid = (): DomainError =>
  new DomainError({
    kind: "unauthenticated",
    reason: "session_invalid",
    message: "The worker session has ended. Register again.",
  });
