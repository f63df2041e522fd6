import type { KeyObject } from "node:crypto";
import { deriveKey, signingKeyOf } from "@millwright/vault";
import type { PublicKey } from "@millwright/rpc";
import { calculateJwkThumbprint, exportJWK, SignJWT } from "jose";
import { RUN_TOKEN_PREFIX, type RunTokenClaims } from "../runs/domain/run-token.ts";

/** The first part of the ids of these keys. It is not the name of a service, so no service signs callers with them. */
const RUN_TOKEN_KEYS = "run-tokens";

export type RunTokenKeys = { readonly privateKey: KeyObject; readonly jwk: PublicKey };

/**
 * Returns the key pair that signs run tokens. It is derived from the master key, so it is the same on every replica and
 * after every start: tokens remain valid across a restart, and nothing is stored.
 */
export async function runTokenKeys(masterKey: Uint8Array): Promise<RunTokenKeys> {
  const { privateKey, publicKey } = signingKeyOf(deriveKey(masterKey, "run tokens"));
  const jwk = await exportJWK(publicKey);
  return {
    privateKey,
    jwk: { ...jwk, kid: `${RUN_TOKEN_KEYS}.${await calculateJwkThumbprint(jwk)}`, alg: "EdDSA", use: "sig" },
  };
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
    ...(run.agentUid ? { agent: run.agentUid } : {}),
    ...(run.owner.type === "team" ? { team: run.owner.uid } : {}),
    ...(run.factoryUid ? { factory: run.factoryUid } : {}),
  })
    .setProtectedHeader({ alg: "EdDSA", kid: jwk.kid })
    .setIssuer("orchestrator")
    .setExpirationTime(expiresAt.getTime() / 1000)
    .sign(privateKey);
  return RUN_TOKEN_PREFIX + token;
}
