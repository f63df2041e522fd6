import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import { checkSecret } from "../domain/secret.ts";
import type { Webhook } from "../domain/webhook.ts";
import type { TeamSecretName, TeamSecretValue } from "../store/team-secret-store.ts";

/** A value is compared with the gateway's own this long after it was pushed: by then the gateway has kept it, or never will. */
const CONFIRM_AFTER_MS = 15_000;
const BATCH = 50;

export type TeamSecretsDeps = {
  copies: {
    expect(secret: TeamSecretName): Promise<void>;
    keep(secret: TeamSecretName, value: TeamSecretValue): Promise<void>;
    push(secret: TeamSecretName, value: TeamSecretValue, now: Date): Promise<void>;
    unconfirmed(before: Date, limit: number): Promise<(TeamSecretName & { pushedAt: Date })[]>;
    confirm(
      secret: TeamSecretName & { pushedAt: Date },
      present: { value: string; revision: string } | undefined,
    ): Promise<void>;
  };
  webhooks: { listNaming(secret: TeamSecretName): Promise<readonly Webhook[]> };
  identity: {
    /** The present value and revision; undefined: the team has no such secret. */
    secret(secret: TeamSecretName): Promise<{ value: string; revision: string } | undefined>;
  };
  clock: Clock;
};

/** Managed secrets that webhooks name: the value in force when a delivery is verified (decisions "secrets"). */
export class TeamSecrets {
  readonly #deps: TeamSecretsDeps;

  constructor(deps: TeamSecretsDeps) {
    this.#deps = deps;
  }

  /** Keeps a copy from now on; answers the present value. Errors: secret_not_found (invalid_argument). */
  async follow(secret: TeamSecretName): Promise<string> {
    const { copies, identity } = this.#deps;
    await copies.expect(secret);
    const present = await identity.secret(secret);
    if (!present) throw unknownSecret(secret);
    await copies.keep(secret, present);
    return present.value;
  }

  /** The present value, without keeping it. Errors: as `follow`. */
  async peek(secret: TeamSecretName): Promise<string> {
    const present = await this.#deps.identity.secret(secret);
    if (!present) throw unknownSecret(secret);
    return present.value;
  }

  /**
   * Asked by the gateway, while it changes the value: nothing is verified with the old one after this has been answered.
   * Errors: invalid_secret, if a webhook that names the secret cannot have the new value.
   */
  async push(secret: TeamSecretName, value: TeamSecretValue): Promise<void> {
    if (value.value !== undefined)
      for (const webhook of await this.#deps.webhooks.listNaming(secret)) checkFor(webhook, value.value);
    await this.#deps.copies.push(secret, value, this.#deps.clock.now());
  }

  /** Takes the gateway's word where a pushed value may not have been kept there. Answers whether there may be more. */
  async confirm(): Promise<"again" | "idle"> {
    const { copies, identity, clock } = this.#deps;
    const due = await copies.unconfirmed(new Date(clock.now().getTime() - CONFIRM_AFTER_MS), BATCH);
    for (const secret of due) {
      await copies.confirm(secret, await identity.secret(secret));
    }
    return due.length === BATCH ? "again" : "idle";
  }
}

function checkFor(webhook: Webhook, value: string): void {
  try {
    checkSecret(webhook, value);
  } catch (error) {
    throw invalidArgument(
      "invalid_secret",
      `The webhook ${webhook.name} (${webhook.uid}) uses this secret. ${(error as Error).message}`,
    );
  }
}

const unknownSecret = ({ name }: TeamSecretName): Error =>
  invalidArgument("secret_not_found", `The team has no secret named ${name}.`, { names: name });
