import { randomBytes, type KeyObject } from "node:crypto";
import type { Caller } from "@millwright/caller";
import { systemClock, type Clock } from "@millwright/clock";
import { DomainError, isDomainError } from "@millwright/errors";
import { signingKeyOf } from "@millwright/vault";
import { calculateJwkThumbprint, exportJWK, jwtVerify, SignJWT } from "jose";
import { localKeys, type KeySource, type PublicKey } from "./public-keys.ts";

/** The header of the signed caller. */
export const CALLER_HEADER = "millwright-caller";

/** The header of the id of the request on whose behalf a call is made. */
export const REQUEST_ID_HEADER = "x-request-id";

const AUDIENCE = "millwright";
const TOKEN_SECONDS = 60;
const REUSE_MS = 30_000;
/** Maximum number of cached tokens; they live a minute, so an empty cache is cheap. */
const CACHED_MAX = 2_000;

/**
 * Signs callers for one service (Ed25519, valid 60 s). Equal callers share a token for 30 s, whatever their request:
 * the id of the request is sent beside the token.
 */
export class CallerSigner {
  readonly service: string;
  /** The public key for the verifiers of all services. */
  readonly jwk: PublicKey;
  readonly #key: KeyObject;
  readonly #clock: Clock;
  readonly #tokens = new Map<string, { token: Promise<string>; untilMs: number }>();

  private constructor(service: string, key: KeyObject, jwk: PublicKey, clock: Clock) {
    this.service = service;
    this.#key = key;
    this.jwk = jwk;
    this.#clock = clock;
  }

  /** Creates a signer with a new key pair; the private key exists in this process only. */
  static create(service: string, clock: Clock = systemClock): Promise<CallerSigner> {
    return CallerSigner.fromSeed(service, randomBytes(32), clock);
  }

  /** Creates the signer of a service's own secret of 32 bytes: the same key on every replica and after every start. */
  static async fromSeed(service: string, seed: Uint8Array, clock: Clock = systemClock): Promise<CallerSigner> {
    const { publicKey, privateKey } = signingKeyOf(seed);
    const jwk = await exportJWK(publicKey);
    const kid = `${service}.${(await calculateJwkThumbprint(jwk)).slice(0, 16)}`;
    return new CallerSigner(service, privateKey, { ...jwk, kid, alg: "EdDSA", use: "sig" }, clock);
  }

  sign(caller: Caller): Promise<string> {
    const nowMs = this.#clock.now().getTime();
    const content = JSON.stringify({ ...caller, requestId: "" });
    const known = this.#tokens.get(content);
    if (known && nowMs < known.untilMs) return known.token;
    const token = this.#sign(caller, Math.floor(nowMs / 1000));
    remember(this.#tokens, content, { token, untilMs: nowMs + REUSE_MS });
    return token;
  }

  #sign(caller: Caller, nowSeconds: number): Promise<string> {
    return new SignJWT({ caller })
      .setProtectedHeader({ alg: "EdDSA", kid: this.jwk.kid })
      .setIssuer(this.service)
      .setAudience(AUDIENCE)
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + TOKEN_SECONDS)
      .sign(this.#key);
  }
}

/**
 * Authenticates the caller of a request. Returns undefined on a server that permits requests without a caller; throws
 * to reject.
 */
export interface Verifier {
  authenticate(header: Headers, method: string): Promise<Caller | undefined>;
}

/** Verifies the tokens of all services whose public keys it has. A verified token is cached until it expires. */
export class CallerVerifier implements Verifier {
  readonly #keys: KeySource;
  readonly #clock: Clock;
  readonly #verified = new Map<string, { caller: Caller; untilMs: number }>();

  /** Accepts the keys themselves, or a source of keys. */
  constructor(keys: readonly PublicKey[] | KeySource, clock: Clock = systemClock) {
    this.#keys = isList(keys) ? localKeys(keys) : keys;
    this.#clock = clock;
  }

  /** Errors: caller_missing, caller_invalid (unauthenticated), keys_unavailable. */
  async authenticate(header: Headers): Promise<Caller> {
    const token = header.get(CALLER_HEADER);
    if (token === null) throw refused("caller_missing");
    const caller = await this.verify(token);
    const requestId = header.get(REQUEST_ID_HEADER); // a service of version 0.1.0 sends it in the token only
    return requestId === null ? caller : { ...caller, requestId };
  }

  async verify(token: string): Promise<Caller> {
    const nowMs = this.#clock.now().getTime();
    const known = this.#verified.get(token);
    if (known && nowMs < known.untilMs) return known.caller;
    const { caller, untilMs } = await this.#verifyNew(token);
    remember(this.#verified, token, { caller, untilMs });
    return caller;
  }

  async #verifyNew(token: string): Promise<{ caller: Caller; untilMs: number }> {
    try {
      const { payload, protectedHeader } = await jwtVerify<{ caller: Caller }>(
        token,
        ({ kid }) => keyOf(this.#keys, kid),
        {
          audience: AUDIENCE,
          algorithms: ["EdDSA"],
          requiredClaims: ["iss", "exp", "caller"],
          currentDate: this.#clock.now(),
          clockTolerance: 5,
        },
      );
      const { caller, iss, exp } = payload;
      const speaksForItself = protectedHeader.kid?.startsWith(`${iss}.`) === true;
      const isItself = caller.principal.type !== "service" || caller.principal.uid === iss;
      if (!speaksForItself || !isItself) throw new Error("the token names another service than its key");
      return { caller, untilMs: (exp ?? 0) * 1000 };
    } catch (cause) {
      throw isDomainError(cause) ? cause : refused("caller_invalid", cause);
    }
  }
}

function remember<T>(cache: Map<string, T>, key: string, value: T): void {
  if (cache.size >= CACHED_MAX) cache.clear();
  cache.set(key, value);
}

const isList = (keys: readonly PublicKey[] | KeySource): keys is readonly PublicKey[] => Array.isArray(keys);

async function keyOf(keys: KeySource, kid: string | undefined): Promise<PublicKey> {
  const key = kid === undefined ? undefined : await keys.find(kid);
  if (!key) throw new Error("the key is not known");
  return key;
}

const refused = (reason: string, cause?: unknown): DomainError =>
  new DomainError({
    kind: "unauthenticated",
    reason,
    message: "The caller token of the call is missing or not valid.",
    cause,
  });
