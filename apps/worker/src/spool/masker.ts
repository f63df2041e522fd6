import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { mapStrings } from "./event-payload.ts";

/** Shorter values would blot out ordinary text. */
const LENGTH_MIN = 4;
const LINE_LENGTH_MIN = 16;
/** The worker's own members: ids and words that the platform and the next attempt go by. A secret of the same spelling ("user") changes none of them. */
const OWN_MEMBERS = new Set(["role", "kind", "message_uid", "step_id", "call_id", "state", "outcome"]);
/** A token is renewed with every heartbeat and dies soon after; older ones than these open nothing. */
const TOKENS_MAX = 8;

/** Replaces secrets by `***`, and characters that cannot be stored, in everything that leaves the worker as an event or as an execution's end. */
export class Masker {
  readonly #secrets: readonly string[];
  #tokens: readonly string[] = [];
  #masked: readonly string[];

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets.flatMap((secret) => [secret, ...linesOf(secret)]).filter((secret) => secret.length >= LENGTH_MIN);
    this.#masked = longestFirst(this.#secrets);
  }

  /** The next token of this execution; the last few before it stay masked too. */
  addToken(token: string): void {
    if (token.length < LENGTH_MIN || this.#tokens.includes(token)) return;
    this.#tokens = [...this.#tokens, token].slice(-TOKENS_MAX);
    this.#masked = longestFirst([...this.#secrets, ...this.#tokens]);
  }

  text(text: string): string {
    let masked = text.replaceAll("\0", "\uFFFD"); // the platform's database knows no NUL in texts
    for (const secret of this.#masked) if (masked.includes(secret)) masked = masked.replaceAll(secret, "***");
    return masked;
  }

  payload(payload: JsonObject): JsonObject {
    const masked = (value: JsonValue) => mapStrings(value, (text) => this.text(text));
    return Object.fromEntries(Object.entries(payload).map(([name, value]) => [name, OWN_MEMBERS.has(name) ? value : masked(value)]));
  }
}

/** Lines of a secret that has several: a key may be shown indented, or in part. Short ones may be anybody's. */
const linesOf = (secret: string): string[] => (secret.includes("\n") ? secret.split(/\r?\n/).map((line) => line.trim()).filter((line) => line.length >= LINE_LENGTH_MIN) : []);

/** So that a secret which contains another one is replaced whole. */
const longestFirst = (secrets: readonly string[]): readonly string[] => [...new Set(secrets)].sort((a, b) => b.length - a.length);
