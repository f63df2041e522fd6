import { hkdfSync, randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const KEY_BYTES = 32;

/**
 * Derives a key of 32 bytes for one purpose; it reveals nothing about the master key or the keys of other purposes
 * (HKDF-SHA-256).
 */
export const deriveKey = (master: Uint8Array, purpose: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", master, new Uint8Array(0), `millwright ${purpose}`, KEY_BYTES));

/**
 * The platform's master keys. `masterKey` encrypts and signs. During a rotation, what `secondaryMasterKey` encrypted or
 * signed is accepted, too.
 */
export type MasterKeys = { readonly masterKey: Uint8Array; readonly secondaryMasterKey?: Uint8Array | undefined };

/** Returns the keys of one purpose, derived from each master key; the first one signs. */
export const deriveKeys = (keys: MasterKeys, purpose: string): [Uint8Array, ...Uint8Array[]] => [
  deriveKey(keys.masterKey, purpose),
  ...(keys.secondaryMasterKey ? [deriveKey(keys.secondaryMasterKey, purpose)] : []),
];

/** Returns the worker key for runs of every team that a platform has unless its operator chose one. */
export const platformWorkerKey = (masterKey: Uint8Array): string =>
  `mww_${Buffer.from(deriveKey(masterKey, "platform worker key")).toString("base64url")}`;

/**
 * Reads the master key (32 bytes, base64 text) from a file, creating file (mode 0600) and directory on first use.
 * Processes that start concurrently agree on one key.
 *
 * Throws a plain Error if other users can read the file or it does not contain a key. Losing the file loses every
 * secret encrypted with it.
 */
export function loadOrCreateMasterKey(path: string): Uint8Array {
  const existing = readKey(path);
  if (existing) return existing;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    writeFileSync(draft, `${randomBytes(KEY_BYTES).toString("base64")}\n`, { mode: 0o600, flag: "wx", flush: true });
    linkSync(draft, path); // fails if another process was first, and never shows a partial file
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const key = readKey(path);
  if (!key) throw new Error(`the master key file ${path} vanished`);
  return key;
}

/** Reads a key from an existing file. Errors: as `loadOrCreateMasterKey`. */
export function readKeyFile(path: string): Uint8Array {
  const key = readKey(path);
  if (!key) throw new Error(`the key file ${path} does not exist`);
  return key;
}

function readKey(path: string): Uint8Array | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  if ((statSync(path).mode & 0o077) !== 0)
    throw new Error(`the key file ${path} must be readable by its owner only (mode 0600)`);
  return parseKey(text, `the key file ${path}`);
}

/** Parses a key of 32 bytes from its base64 text. Throws a plain Error that names `what` and never the text. */
export function parseKey(text: string, what: string): Uint8Array {
  const key = Buffer.from(text.trim(), "base64");
  if (key.length !== KEY_BYTES) throw new Error(`${what} does not contain ${KEY_BYTES} bytes in base64`);
  return new Uint8Array(key);
}
