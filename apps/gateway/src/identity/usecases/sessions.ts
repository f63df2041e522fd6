import type { JsonObject } from "@bufbuild/protobuf";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import { bestEffort, DomainError, type WarnLog } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { facts } from "../events/facts.ts";
import { hashOfKey, newSessionToken } from "../domain/credentials.ts";
import { findCredentialOfSession, type Credential } from "../store/credential-store.ts";
import {
  deleteExpiredSessions,
  deleteSessionOf,
  deleteSessionsOf,
  insertSession,
  recordSessionUse,
  rotateSession,
  type SessionInTeam,
} from "../store/session-store.ts";

export type SessionLimits = {
  /** A session ends this long after its start. */
  readonly lifetimeMs: number;
  /** A session ends if it is not used for this long. */
  readonly idleMs: number;
};

/** The token of a session, which only the browser stores. */
export type SessionToken = { readonly token: string; readonly expiresAt: Date };

export const SESSION_LIMITS: SessionLimits = { lifetimeMs: 24 * 3_600_000, idleMs: 12 * 3_600_000 };

const ROTATED_EVERY_MS = 3_600_000;
const USE_RECORDED_EVERY_MS = 60_000;
/** For requests that the browser sent before it had the new token. */
const PREVIOUS_VALID_MS = 60_000;

type SessionDeps = {
  readonly database: Pick<Database, "sql" | "lookups" | "transaction">;
  readonly clock: Clock;
  readonly log: WarnLog;
  readonly limits: SessionLimits;
};

/**
 * Sessions of browsers. Each is a row that every request reads, so ending it takes effect at once on all replicas. Only
 * hashes of their tokens are stored.
 */
export class Sessions {
  readonly #deps: SessionDeps;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** Starts a session that acts with a key, and ends with it. */
  async startWithKey({ keyUid, user }: Credential, requestId: string): Promise<SessionToken> {
    return this.#start({ keyUid, userUid: user?.uid ?? null }, "key", requestId);
  }

  /** Starts a session of a person who has proved their identity. It has all their rights. */
  async startForUser(userUid: string, method: "link" | "provider", requestId: string): Promise<SessionToken> {
    return this.#start({ keyUid: null, userUid }, method, requestId);
  }

  async #start(
    owner: { keyUid: string | null; userUid: string | null },
    method: "key" | "link" | "provider",
    requestId: string,
  ): Promise<SessionToken> {
    const { clock, database, limits } = this.#deps;
    const now = clock.now();
    const token = newSessionToken();
    const expiresAt = new Date(now.getTime() + limits.lifetimeMs);
    await deleteExpiredSessions(database.sql, now, this.#idleSince(now));
    const session = { uid: newUid(), tokenHash: hashOfKey(token), ...owner, now, expiresAt };
    await database.transaction(async (tx) => {
      const started = await insertSession(tx, session);
      await appendEvents(tx, eventsOf("sessionStarted", started, requestId, { method }));
    });
    return { token, expiresAt };
  }

  /** Returns the credential of a session. Errors: session_ended (unauthenticated), also if its key is not valid. */
  async authenticate(token: string): Promise<Credential> {
    const { clock, database, log } = this.#deps;
    const now = clock.now();
    const credential = await findCredentialOfSession(database, hashOfKey(token), now, this.#idleSince(now));
    if (!credential)
      throw new DomainError({
        kind: "unauthenticated",
        reason: "session_ended",
        message: "The session has ended. Sign in again.",
      });
    if (now.getTime() - credential.lastUsedAt!.getTime() > USE_RECORDED_EVERY_MS)
      await bestEffort("record the use of a session", log, () =>
        recordSessionUse(database.sql, {
          ...credential.session,
          now,
          previousUntil: new Date(now.getTime() + PREVIOUS_VALID_MS),
        }),
      );
    return credential;
  }

  /** Returns a new token for the session of a request, or undefined while its token is less than an hour old. */
  async rotate(credential: Credential | undefined): Promise<SessionToken | undefined> {
    const session = credential?.session;
    const now = this.#deps.clock.now();
    if (!session || now.getTime() - session.rotatedAt.getTime() < ROTATED_EVERY_MS) return undefined;
    const token = newSessionToken();
    const { uid, tokenHash: presentedHash, rotatedAt, expiresAt } = session;
    const rotation = { uid, presentedHash, newHash: hashOfKey(token), rotatedAt, now };
    return (await rotateSession(this.#deps.database.sql, rotation)) ? { token, expiresAt } : undefined;
  }

  /** Ends the session of a token. */
  async end(token: string, requestId: string): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      const ended = await deleteSessionOf(tx, hashOfKey(token));
      await appendEvents(tx, eventsOf("sessionEnded", ended, requestId, { everywhere: false }));
    });
  }

  /** Ends all sessions of the caller: of the person, with any key, or of the key of an agent or a worker. */
  async endAll({ principal, requestId }: Caller, credential: Credential | undefined): Promise<void> {
    const owner = principal.type === "user" ? { userUid: principal.uid } : credential && { keyUid: credential.keyUid };
    if (!owner) return;
    await this.#deps.database.transaction(async (tx) => {
      const ended = await deleteSessionsOf(tx, owner);
      await appendEvents(tx, eventsOf("sessionEnded", ended, requestId, { everywhere: true }));
    });
  }

  #idleSince(now: Date): Date {
    return new Date(now.getTime() - this.#deps.limits.idleMs);
  }
}

/** Returns an event for each team, which is in the audit log of that team. */
const eventsOf = (
  happened: "sessionStarted" | "sessionEnded",
  sessions: readonly SessionInTeam[],
  requestId: string,
  payload: JsonObject,
): NewEvent[] =>
  sessions.map(({ uid, teamUid, actorType, actorUid }) =>
    facts[happened](
      { actor: { type: actorType, uid: actorUid }, requestId },
      { uid: `${teamUid}:${uid}`, teamUid, version: happened === "sessionStarted" ? 1 : 2, payload },
    ),
  );
