import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";

/** The constant prefix of an Ed25519 private key in PKCS #8; the seed of 32 bytes follows. */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");

export type SigningKey = { readonly privateKey: KeyObject; readonly publicKey: KeyObject };

/** Returns the Ed25519 key pair of a seed of 32 bytes: the same on every replica and after every start. */
export function signingKeyOf(seed: Uint8Array): SigningKey {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: "der", type: "pkcs8" });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}
