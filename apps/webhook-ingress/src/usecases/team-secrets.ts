import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import { checkSecret } from "../domain/secret.ts";
import type { Webhook } from "../domain/webhook.ts";
import type { TeamSecretName, TeamSecretValue, TeamSecretStore } from "../store/team-secret-store.ts";
import type { WebhookStore } from "../store/webhook-store.ts";

/** When a pushed value is compared with the gateway's: by then the gateway has stored it or has failed. */
const CONFIRM_AFTER_MS = 15_000;
const BATCH = 50;

export type TeamSecretsDeps = {
  copies: Pick<TeamSecretStore, "register" | "storeFetched" | "push" | "unconfirmed" | "confirm">;
  webhooks: Pick<WebhookStore, "listNaming">;
  identity: {
    /** Returns the current value and revision; undefined if the team has no such secret. */
    secret(secret: TeamSecretName): Promise<{ value: string; revision: string } | undefined>;
  };
  clock: Clock;
};

/** Managed secrets that webhooks name: the value that verifies deliveries. */
export class TeamSecrets {
  readonly #deps: TeamSecretsDeps;

  constructor(deps: TeamSecretsDeps) {
    this.#deps = deps;
  }

  /** Stores and updates a copy from now on; returns the current value. Errors: secret_not_found (invalid_argument). */
  async track(secret: TeamSecretName): Promise<string> {
    const { copies, identity } = this.#deps;
    await copies.register(secret);
    const current = await identity.secret(secret);
    if (!current) throw unknownSecret(secret);
    await copies.storeFetched(secret, current);
    return current.value;
  }

  /** Returns the current value without storing it. Errors: as `track`. */
  async peek(secret: TeamSecretName): Promise<string> {
    const current = await this.#deps.identity.secret(secret);
    if (!current) throw unknownSecret(secret);
    return current.value;
  }

  /**
   * Stores a value that the gateway is about to change: after it returns, the old value verifies nothing.
   * Errors: invalid_secret, if a webhook that names the secret cannot use the new value.
   */
  async push(secret: TeamSecretName, value: TeamSecretValue): Promise<void> {
    if (value.value !== undefined)
      for (const webhook of await this.#deps.webhooks.listNaming(secret)) checkFor(webhook, value.value);
    await this.#deps.copies.push(secret, value, this.#deps.clock.now());
  }

  /** Replaces pushed values with the gateway's, in case it failed to store them. Returns whether there may be more. */
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
