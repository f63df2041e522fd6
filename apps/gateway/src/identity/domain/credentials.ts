import { hash } from "node:crypto";
import { randomToken } from "@millwright/ids";

export type KeyKind = "api" | "worker";

const PREFIXES: Readonly<Record<KeyKind, string>> = { api: "mw_", worker: "mww_" };
const PREFIX_SHOWN = 10;

/** Prefix of run tokens, which are verified by signature instead of a database lookup. */
export const RUN_TOKEN_PREFIX = "mwr_";

/** Prefix of the tokens of browser sessions, which are only ever in sealed cookies. */
export const SESSION_TOKEN_PREFIX = "mwb_";

export const newSessionToken = (): string => SESSION_TOKEN_PREFIX + randomToken(32);

export const newKeyText = (kind: KeyKind): string => PREFIXES[kind] + randomToken(32);

/** Returns the hash that is stored of a key. Keys are random, so a plain hash suffices. */
export const hashOfKey = (text: string): string => hash("sha256", text, "hex");

/** Returns the part of a key that lists show, so that people can distinguish keys. */
export const shownPrefix = (text: string): string => text.slice(0, PREFIX_SHOWN);
