import { hash } from "node:crypto";
import { randomToken } from "@millwright/ids";

export type KeyKind = "api" | "worker";

const PREFIXES: Readonly<Record<KeyKind, string>> = { api: "mw_", worker: "mww_" };
const PREFIX_SHOWN = 10;

/** Tokens of runs start with this; they are verified, not looked up. */
export const RUN_TOKEN_PREFIX = "mwr_";

export const newKeyText = (kind: KeyKind): string => PREFIXES[kind] + randomToken(32);

/** What is stored of a key. Keys are random, so a plain hash suffices. */
export const hashOfKey = (text: string): string => hash("sha256", text, "hex");

/** The part shown in lists, so that people can tell keys apart. */
export const shownPrefix = (text: string): string => text.slice(0, PREFIX_SHOWN);
