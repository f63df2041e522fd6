import type { Client } from "@connectrpc/connect";
import type { worker } from "@millwright/contracts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DomainError } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import { platformError } from "./platform-error.ts";
import { retrying } from "./retrying.ts";
import { DEFAULT_TIMINGS, timingsFrom, type Timings } from "./timings.ts";
import { unlessAborted, type Timers } from "../time/timers.ts";

export type Registration = { readonly token: string };

export type SessionDeps = {
  /** The client for Register, which carries no session itself. */
  readonly registrar: Pick<Client<typeof worker.WorkerService>, "register">;
  readonly workerKey: string;
  /** The same for all registrations, so that the platform recognizes the process and its leases remain valid. */
  readonly request: MessageInitShape<typeof worker.RegisterRequestSchema>;
  readonly timers: Timers;
  readonly log: Logger;
  /** Called if the platform permanently rejects this worker (key_invalid, worker_too_old); a retry would not help. */
  readonly onRefused: (error: Error) => void;
};

const REFUSALS = new Set(["unauthenticated", "permission_denied", "feature_off"]);
const isRefusal = ({ kind, reason }: DomainError): boolean =>
  REFUSALS.has(kind) || reason === "worker_too_old" || reason === "key_invalid";

/**
 * This process's session with the platform. It registers at first use, and again whenever the session has become
 * invalid.
 */
export class Session {
  readonly #deps: SessionDeps;
  readonly #closed = new AbortController();
  #current: Promise<Registration> | undefined;
  #timings = DEFAULT_TIMINGS;
  #publicUrl = "";

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** Returns the latest announced timings. */
  readonly timings = (): Timings => this.#timings;

  /** The public origin of the REST API; "" before the first registration. */
  get publicUrl(): string {
    return this.#publicUrl;
  }

  /**
   * Returns the current session; waits for a running registration. Throws the platform's rejection or the reason of
   * `signal`.
   */
  current(signal: AbortSignal): Promise<Registration> {
    this.#current ??= this.#register();
    return unlessAborted(this.#current, signal);
  }

  /** Drops the session with this token; a newer one is retained. */
  async invalidate(token: string): Promise<void> {
    const seen = this.#current;
    const registration = await seen?.catch(() => undefined); // onRefused has already received a refusal
    if (registration?.token === token && this.#current === seen) this.#current = undefined;
  }

  close(): void {
    this.#closed.abort(new Error("The worker has ended."));
  }

  async #register(): Promise<Registration> {
    const { registrar, request, workerKey, timers, log } = this.#deps;
    const response = await retrying({ timers, timings: this.timings }, this.#closed.signal, async () => {
      try {
        return await registrar.register(request, {
          headers: { authorization: `Bearer ${workerKey}` },
          timeoutMs: this.#timings.callTimeoutMs,
          signal: this.#closed.signal,
        });
      } catch (error) {
        const failure = platformError(error);
        if (!isRefusal(failure))
          log.warn({ operation: "Register", reason: failure.reason, error: failure }, "registration failed");
        throw failure;
      }
    }).catch((error: unknown) => {
      const failure = platformError(error);
      if (isRefusal(failure)) this.#deps.onRefused(failure);
      throw error;
    });
    this.#timings = timingsFrom(response);
    log.info({ operation: "Register" }, "registered");
    this.#publicUrl = response.publicUrl;
    return { token: response.sessionToken };
  }
}
