import { hash, randomBytes, randomFillSync } from "node:crypto";
import { as, type EnvironmentUid, type Uid } from "./uids.ts";

/** The UUID of zeros, which identifies nothing and sorts before every other UUID. */
export const NIL_UUID = "00000000-0000-0000-0000-000000000000";

/**
 * A buffer of random bytes: requesting a few at a time from the system costs ten times as much. For ids only; secrets
 * are drawn separately.
 */
const stock = Buffer.alloc(4096);
let used = stock.length;

function takeRandom(count: number): Buffer {
  if (used + count > stock.length) {
    randomFillSync(stock);
    used = 0;
  }
  used += count;
  return stock.subarray(used - count, used);
}

/** Returns `bytes` random bytes as lower-case hex digits, for ids that need no secrecy. */
export const randomHex = (bytes: number): string => takeRandom(bytes).toString("hex");

let lastMs = 0;
let sequence = 0;

/** Returns a new UUIDv7 in lower case: sorts by time of creation, and by order of creation within one process. */
export function newUid<T extends Uid<string> = Uid<string>>(): T {
  const bytes = takeRandom(16);
  const nowMs = Math.max(Date.now(), lastMs);
  // A 12-bit counter with a low random start (RFC 9562 §6.2); on overflow the time advances by 1 ms.
  sequence = nowMs === lastMs ? sequence + 1 : bytes.readUInt16BE(6) & 0x7ff;
  lastMs = sequence > 0xfff ? nowMs + 1 : nowMs;
  if (sequence > 0xfff) sequence = 0;
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | sequence, 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return as<T>(dashed(bytes.toString("hex")));
}

/** Returns the same uid for the same text: a UUIDv8 of its SHA-256. */
export function uidOf(text: string): string {
  const hex = hash("sha256", text);
  return dashed(`${hex.slice(0, 12)}8${hex.slice(13, 16)}8${hex.slice(17, 32)}`);
}

/** Returns the uid of a factory's runner: derived from its name, since runners have no other identity. */
export const runnerUidOf = (factoryUid: string, name: string): string =>
  uidOf(JSON.stringify(["runner", factoryUid, name]));

const dashed = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns whether a text has the form of a UUID of any version, in any case. */
export const isUuid = (text: string): boolean => UUID.test(text);

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Returns 22 characters of [A-Za-z0-9], each equally likely (about 131 bits). */
export function newEnvironmentUid(): EnvironmentUid {
  let text = "";
  while (text.length < 22) {
    for (const byte of randomBytes(32)) {
      if (byte < 248 && text.length < 22) text += ALPHABET.charAt(byte % 62); // 248 = 4 × 62: an unbiased choice
    }
  }
  return as<EnvironmentUid>(text);
}

/** Returns an unguessable URL-safe text of `bytes` random bytes (base64url). */
export const randomToken = (bytes: number): string => randomBytes(bytes).toString("base64url");
