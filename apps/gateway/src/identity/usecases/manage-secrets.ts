import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, invalidArgument } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { Vault } from "@millwright/vault";
import { causedBy, facts } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import {
  deleteSecretRow,
  findSecret,
  insertSecret,
  replaceSecret,
  sealedSecrets,
  type Secret,
} from "../store/secret-store.ts";
import { lockTeam } from "../store/team-store.ts";

/**
 * Sends a value that is about to be stored (undefined: deleted) to the webhooks that reference the secret. `revision`
 * sorts after those of earlier values, also if the secret was deleted and created again. Errors: unavailable.
 */
export type PushSecret = (secret: {
  teamUid: string;
  name: string;
  revision: string;
  value: string | undefined;
}) => Promise<void>;

export type SecretDeps = { tx: Tx; clock: Clock; vault: Vault; pushSecret: PushSecret };
type NamedSecret = { teamUid: string; name: string };

/** Returns the revision of a secret. Uids sort by the time of creation. */
const revisionOf = ({ uid, version }: Pick<Secret, "uid" | "version">): string =>
  `${uid}/${String(version).padStart(10, "0")}`;

const sealContext = (uid: string): string => `secret:${uid}`;

/**
 * Stores a value under a name: creates the secret, or replaces it unless `mustBeNew`. The public API never returns the
 * value.
 *
 * Webhooks that reference the secret receive the new value before the response is sent; if they cannot be reached, the
 * change fails and the old value remains. The push happens in the transaction, under the lock of the team, so that
 * concurrent changes are pushed in commit order. If the commit fails after the push, the webhook ingress reads the
 * current value later and replaces the pushed one.
 *
 * Errors: team_not_found · not_authorized · secret_exists (conflict).
 */
export async function setSecret(
  deps: SecretDeps,
  caller: Caller,
  input: NamedSecret & { value: string; mustBeNew: boolean },
): Promise<{ secret: Secret; isNew: boolean }> {
  const { tx, vault } = deps;
  requireVerb(caller, input.teamUid, "secret.manage", "team");
  await lockTeam(tx, input.teamUid);
  const now = deps.clock.now();
  const before = await findSecret(tx, input.teamUid, input.name);
  if (before && input.mustBeNew)
    throw new DomainError({
      kind: "conflict",
      reason: "secret_exists",
      message: "The team already has a secret of this name. Replace it with PUT.",
    });
  const uid = before?.uid ?? newUid();
  const sealed = vault.seal(input.value, sealContext(uid));
  const secret = before
    ? await replaceSecret(tx, uid, sealed, caller.principal.uid, now)
    : await insertSecret(tx, {
        uid,
        teamUid: input.teamUid,
        name: input.name,
        sealed,
        updatedBy: caller.principal.uid,
        createdAt: now,
        updatedAt: now,
      });
  await announce(tx, caller, input, secret, before ? "updated" : "created");
  await deps.pushSecret({ teamUid: input.teamUid, name: input.name, revision: revisionOf(secret), value: input.value });
  return { secret, isNew: !before };
}

/** Deletes a secret. Errors: secret_not_found (also for callers outside the team) · not_authorized. */
export async function deleteSecret(
  deps: Pick<SecretDeps, "tx" | "pushSecret">,
  caller: Caller,
  input: NamedSecret,
): Promise<void> {
  requireVerb(caller, input.teamUid, "secret.manage", "secret");
  await lockTeam(deps.tx, input.teamUid);
  const secret = await deleteSecretRow(deps.tx, input.teamUid, input.name);
  const deleted = { ...secret, version: secret.version + 1 };
  await announce(deps.tx, caller, input, deleted, "deleted");
  await deps.pushSecret({ teamUid: input.teamUid, name: input.name, revision: revisionOf(deleted), value: undefined });
}

/**
 * Returns values by name, for services only. Optional names may be absent. Errors: secret_not_found (invalid_argument)
 * with the missing names.
 */
export async function resolveSecrets(
  deps: Pick<SecretDeps, "tx" | "vault">,
  input: { teamUid: string; names: readonly string[]; optionalNames: readonly string[] },
): Promise<{ values: Record<string, string>; revisions: Record<string, string> }> {
  const rows = await sealedSecrets(deps.tx, input.teamUid, [...input.names, ...input.optionalNames]);
  const values = Object.fromEntries(
    rows.map(({ uid, name, sealed }) => [name, deps.vault.open(sealed, sealContext(uid))]),
  );
  const missing = input.names.filter((name) => !Object.hasOwn(values, name));
  if (missing.length > 0)
    throw invalidArgument("secret_not_found", `The team has no secret named ${missing.join(", ")}.`, {
      names: missing.join(","),
    });
  return { values, revisions: Object.fromEntries(rows.map((row) => [row.name, revisionOf(row)])) };
}

async function announce(
  { sql }: Tx,
  caller: Caller,
  { teamUid, name }: NamedSecret,
  secret: Secret,
  change: string,
): Promise<void> {
  await appendEvents(sql, [
    facts.secretChanged(causedBy(caller), {
      uid: secret.uid,
      version: secret.version,
      teamUid,
      payload: { name, change },
    }),
  ]);
}
