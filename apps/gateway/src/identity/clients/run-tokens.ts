import { jwtVerify } from "jose";
import type { Client } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { orchestrator } from "@millwright/contracts";
import { DomainError, isDomainError } from "@millwright/errors";
import { as, type RunUid, type TeamUid } from "@millwright/ids";
import { call, type KeySource, type PublicKey } from "@millwright/rpc";
import { RUN_VERBS } from "../domain/roles.ts";

/** Authenticates run tokens: JWTs (Ed25519) signed by the orchestrator, valid while their attempt has the lease. */
export class RunTokens {
  readonly #keys: KeySource;
  readonly #leases: Pick<Client<typeof orchestrator.LeaseService>, "checkLease"> | undefined;
  readonly #clock: Clock;

  constructor(deps: {
    keys: KeySource;
    leases: Pick<Client<typeof orchestrator.LeaseService>, "checkLease"> | undefined;
    clock: Clock;
  }) {
    this.#keys = deps.keys;
    this.#leases = deps.leases;
    this.#clock = deps.clock;
  }

  /**
   * Returns the caller of a run token. The signature is verified first, so that requests with forged tokens do not
   * reach the orchestrator. Then the orchestrator checks the lease, on every request.
   *
   * Errors: run_token_invalid, lease_lost (unauthenticated) · unavailable if the orchestrator cannot be reached.
   */
  async authenticate(token: string, requestId: string): Promise<Caller> {
    const { executionId, attempt } = await this.#verify(token);
    if (!this.#leases) throw invalid();
    const lease = await this.#leases.checkLease(
      { executionId: BigInt(executionId), attempt },
      call(serviceCaller("gateway", requestId)),
    );
    const teamUid = as<TeamUid>(lease.teamUid);
    return {
      principal: lease.agentUid ? { type: "agent", uid: lease.agentUid } : { type: "user", uid: lease.creatorUid },
      teams: lease.teamUid ? [{ teamUid, verbs: RUN_VERBS }] : [],
      activeTeamUid: lease.teamUid ? teamUid : undefined,
      // A team's run has no access to resources that its creator owns personally. A personal run acts within its own
      // tree.
      personal: lease.ownerType === "user" ? RUN_VERBS : undefined,
      platformAdmin: false,
      requestId,
      run: {
        runUid: as<RunUid>(lease.runUid),
        rootRunUid: as<RunUid>(lease.rootRunUid),
        factoryUid: lease.factoryUid || undefined,
        executionId,
        attempt,
      },
    };
  }

  async #verify(token: string): Promise<{ executionId: string; attempt: number }> {
    try {
      const { payload } = await jwtVerify<{ execution: number | string; attempt: number }>(
        token,
        ({ kid = "" }) => this.#keyOf(kid),
        {
          algorithms: ["EdDSA"],
          requiredClaims: ["exp", "execution", "attempt"],
          currentDate: this.#clock.now(),
        },
      );
      return { executionId: String(BigInt(payload.execution)), attempt: payload.attempt };
    } catch (cause) {
      throw isDomainError(cause) ? cause : invalid(cause);
    }
  }

  async #keyOf(kid: string): Promise<PublicKey> {
    const key = await this.#keys.find(kid);
    if (!key) throw invalid();
    return key;
  }
}

const invalid = (cause?: unknown): DomainError =>
  new DomainError({
    kind: "unauthenticated",
    reason: "run_token_invalid",
    message: "The run token is malformed, expired or not signed by this platform. Use the token of a running attempt.",
    cause,
  });
