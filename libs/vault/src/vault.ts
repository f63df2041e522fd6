import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { DomainError } from "@millwright/errors";
import { deriveKey, type MasterKeys } from "./master-key.ts";

/** An encrypted record as text: `v1.<master key id>.<wrapped data key>.<ciphertext>`, URL-safe. */
export type Sealed = string & { readonly __sealed?: never };

const VERSION = "v1";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts secrets at rest: AES-256-GCM, each record with its own data key, which is wrapped by a master key. Rotation:
 * pass the new master key first and the old ones after it, `rewrap` every record (only the data key is re-encrypted),
 * then drop the old ones.
 */
export class Vault {
  readonly #current: MasterKey;
  readonly #byId: ReadonlyMap<string, MasterKey>;

  private constructor(keys: readonly [MasterKey, ...MasterKey[]]) {
    this.#current = keys[0];
    this.#byId = new Map(keys.map((key) => [key.id, key]));
  }

  /** `key` encrypts; `older` keys still decrypt. 32 bytes each. */
  static fromMasterKey(key: Uint8Array, older: readonly Uint8Array[] = []): Vault {
    return new Vault([masterKey(key), ...older.map(masterKey)]);
  }

  /** The secondary key of a rotation decrypts, too. */
  static fromMasterKeys({ masterKey: key, secondaryMasterKey: secondary }: MasterKeys): Vault {
    return Vault.fromMasterKey(key, secondary ? [secondary] : []);
  }

  /** `aad` names the place of the record ("secret:<uid>"): a copy elsewhere does not decrypt. */
  seal(plain: string | Uint8Array, aad: string): Sealed {
    const dataKey = randomBytes(32);
    const body = encrypt(dataKey, typeof plain === "string" ? Buffer.from(plain, "utf8") : plain, aad);
    return this.#join(this.#current, dataKey, body);
  }

  /** Errors: internal `sealed_unreadable` for another place, an unknown master key, or changed bytes. */
  open(sealed: Sealed, aad: string): string {
    return Buffer.from(this.openBytes(sealed, aad)).toString("utf8");
  }

  /** As `open`, for values that are not text. */
  openBytes(sealed: Sealed, aad: string): Uint8Array {
    const { dataKey, body } = this.#unwrap(sealed);
    return decrypt(dataKey, body, aad);
  }

  /**
   * Returns the record wrapped by the current master key; unchanged if it already is. Needs neither the plaintext nor
   * its place.
   */
  rewrap(sealed: Sealed): Sealed {
    if (this.isCurrent(sealed)) return sealed;
    const { dataKey, body } = this.#unwrap(sealed);
    return this.#join(this.#current, dataKey, body);
  }

  /** Returns whether the record is wrapped by the current master key. */
  isCurrent(sealed: Sealed): boolean {
    return sealed.startsWith(`${VERSION}.${this.#current.id}.`);
  }

  #join(master: MasterKey, dataKey: Uint8Array, body: Uint8Array): Sealed {
    const wrapped = encrypt(master.wrapping, dataKey, `${VERSION}.${master.id}`);
    return [
      VERSION,
      master.id,
      Buffer.from(wrapped).toString("base64url"),
      Buffer.from(body).toString("base64url"),
    ].join(".");
  }

  #unwrap(sealed: Sealed): { dataKey: Uint8Array; body: Uint8Array } {
    const [version, keyId, wrapped, body, ...rest] = sealed.split(".");
    const master = this.#byId.get(keyId ?? "");
    if (version !== VERSION || !master || wrapped === undefined || body === undefined || rest.length > 0)
      throw unreadable();
    const dataKey = decrypt(master.wrapping, Buffer.from(wrapped, "base64url"), `${VERSION}.${master.id}`);
    return { dataKey, body: Buffer.from(body, "base64url") };
  }
}

type MasterKey = { readonly id: string; readonly wrapping: Uint8Array };

/** Returns the public identifier of a master key, which every record contains. Reveals nothing about the key. */
export const masterKeyId = (key: Uint8Array): string => masterKey(key).id;

function masterKey(key: Uint8Array): MasterKey {
  if (key.length !== 32) throw new Error("a master key has 32 bytes");
  const wrapping = deriveKey(key, "vault wrapping key");
  return {
    id: createHash("sha256").update("millwright vault key id").update(wrapping).digest("base64url").slice(0, 12),
    wrapping,
  };
}

function encrypt(key: Uint8Array, plain: Uint8Array, aad: string): Uint8Array {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(aad, "utf8"));
  return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Uint8Array, bytes: Uint8Array, aad: string): Uint8Array {
  if (bytes.length < IV_BYTES + TAG_BYTES) throw unreadable();
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(aad, "utf8")).setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, bytes.length - TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw unreadable(cause);
  }
}

const unreadable = (cause?: unknown): DomainError =>
  new DomainError({
    kind: "internal",
    reason: "sealed_unreadable",
    message: "A stored secret could not be decrypted. Check that MASTER_KEY is the one it was stored with.",
    retryable: false,
    cause,
  });
