import type { KeyObject } from "node:crypto";
import { deriveKeys, signingKeyOf, type MasterKeys } from "@millwright/vault";
import type { PublicKey } from "@millwright/rpc";
import { calculateJwkThumbprint, exportJWK, SignJWT } from "jose";
import { RUN_TOKEN_PREFIX, type RunTokenClaims } from "../runs/domain/run-token.ts";

/** The first part of the ids of these keys. It is not the name of a service, so no service signs callers with them. */
const RUN_TOKEN_KEYS = "run-tokens";

export type RunTokenKeys = {
  readonly privateKey: KeyObject;
  readonly jwk: PublicKey;
  /** With the key of the secondary master key, whose tokens are valid, too. */
  readonly jwks: readonly PublicKey[];
};

/**
 * Returns the key pair that signs run tokens. It is derived from the master key, so it is the same on every replica and
 * after every start: tokens remain valid across a restart, and nothing is stored.
 */
export async function runTokenKeys(keys: MasterKeys): Promise<RunTokenKeys> {
  const [current, ...accepted] = deriveKeys(keys, "run tokens");
  const { privateKey, publicKey } = signingKeyOf(current);
  const jwk = await publicJwk(publicKey);
  const others = await Promise.all(accepted.map((seed) => publicJwk(signingKeyOf(seed).publicKey)));
  return { privateKey, jwk, jwks: [jwk, ...others] };
}

async function publicJwk(publicKey: KeyObject): Promise<PublicKey> {
  const jwk = await exportJWK(publicKey);
  return { ...jwk, kid: `${RUN_TOKEN_KEYS}.${await calculateJwkThumbprint(jwk)}`, alg: "EdDSA", use: "sig" };
}

/** Returns a signed run token: `mwr_` and a JWT that expires with the lease. */
export async function mintRunToken(
  { privateKey, jwk }: RunTokenKeys,
  { run, executionId, attempt, expiresAt }: RunTokenClaims,
): Promise<string> {
  const token = await new SignJWT({
    run: run.runUid,
    root: run.rootRunUid,
    execution: executionId,
    attempt,
    agent: run.agentUid,
    team: run.owner.type === "team" ? run.owner.uid : undefined,
    factory: run.factoryUid,
  })
    .setProtectedHeader({ alg: "EdDSA", kid: jwk.kid })
    .setIssuer("orchestrator")
    .setExpirationTime(expiresAt.getTime() / 1000)
    .sign(privateKey);
  return RUN_TOKEN_PREFIX + token;
}
