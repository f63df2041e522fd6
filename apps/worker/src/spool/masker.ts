import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { maskText, spellingsOf, StreamMasker } from "../sandbox/init/mask.ts";
import { mapStrings } from "./event-payload.ts";

/**
 * Members with the worker's own ids and keywords, which the platform and the next attempt depend on. They are not
 * masked, even if a secret has the same text ("user").
 */
const OWN_MEMBERS = new Set(["role", "kind", "message_uid", "step_id", "call_id", "state", "outcome"]);
/**
 * The number of tokens that are masked. A token is renewed with every heartbeat and expires soon afterwards, so older
 * ones are worthless.
 */
const TOKENS_MAX = 8;

/**
 * Replaces secrets by `***`, and characters that cannot be stored, in all events and completions that leave the worker.
 */
export class Masker {
  readonly #secrets: readonly string[];
  #tokens: readonly string[] = [];
  #masked: readonly string[];

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
    this.#masked = spellingsOf(secrets);
  }

  /** Adds the next token of this execution. The last few tokens before it remain masked. */
  addToken(token: string): void {
    if (this.#tokens.includes(token)) return;
    this.#tokens = [...this.#tokens, token].slice(-TOKENS_MAX);
    this.#masked = spellingsOf([...this.#secrets, ...this.#tokens]);
  }

  /** Returns a masker of the same secrets for a stream. */
  stream(): StreamMasker {
    return new StreamMasker([...this.#secrets, ...this.#tokens]);
  }

  text(text: string): string {
    return maskText(text.replaceAll("\0", "\uFFFD"), this.#masked); // PostgreSQL does not support NUL in texts
  }

  /** Returns a copy of a value with every string masked. */
  value<T extends JsonValue>(value: T): T {
    return mapStrings(value, (text) => this.text(text));
  }

  payload(payload: JsonObject): JsonObject {
    return Object.fromEntries(
      Object.entries(payload).map(([name, value]) => [name, OWN_MEMBERS.has(name) ? value : this.value(value)]),
    );
  }
}
