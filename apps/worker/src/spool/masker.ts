import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { maskText, spellingsOf, StreamMasker } from "../sandbox/init/mask.ts";
import { mapStrings } from "./event-payload.ts";

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
    this.#secrets = secrets;
    this.#masked = spellingsOf(secrets);
  }

  /** The next token of this execution; the last few before it stay masked too. */
  addToken(token: string): void {
    if (this.#tokens.includes(token)) return;
    this.#tokens = [...this.#tokens, token].slice(-TOKENS_MAX);
    this.#masked = spellingsOf([...this.#secrets, ...this.#tokens]);
  }

  /** The same, for a text that comes piece by piece. */
  stream(): StreamMasker {
    return new StreamMasker([...this.#secrets, ...this.#tokens]);
  }

  text(text: string): string {
    return maskText(text.replaceAll("\0", "\uFFFD"), this.#masked); // the platform's database knows no NUL in texts
  }

  /** A copy of a value with every text in it masked. */
  value<T extends JsonValue>(value: T): T {
    return mapStrings(value, (text) => this.text(text));
  }

  payload(payload: JsonObject): JsonObject {
    return Object.fromEntries(
      Object.entries(payload).map(([name, value]) => [name, OWN_MEMBERS.has(name) ? value : this.value(value)]),
    );
  }
}
