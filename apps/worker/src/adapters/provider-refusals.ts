import type { RunFailure } from "../model/model-provider.ts";
import { callFailure } from "../model/wires/call-failure.ts";
import { objectAt, textAt, isAnObject } from "../model/event-fields.ts";
import { parsedJson } from "./json-rpc.ts";

/** Status codes of refusals that no change of the request avoids: of the key, the account or the model. */
const FINAL_STATUS = [401, 402, 403, 404];
/** A program may change its request once and retry, such as without a field that the provider does not support. */
const TRIES_MAX = 2;
/** The maximum number of consecutive transient refusals; programs give up much earlier. */
const TRANSIENT_MAX = 200;

/**
 * Tracks the provider's refusals of an agent program's calls. A permanent one ends the run with the same error mapping
 * as the platform's own agent (`callFailure`): immediately if a change of the request cannot help, otherwise when the
 * program repeats it or ends its turn.
 */
export class ProviderRefusals {
  readonly #provider: string;
  #inARow = 0;
  #open: RunFailure | undefined;

  constructor(provider: string) {
    this.#provider = provider;
  }

  /** The last permanent refusal; undefined if a call succeeded since. */
  get open(): RunFailure | undefined {
    return this.#open;
  }

  /** Resets the state after a successful step and at the beginning of a turn. */
  clear(): void {
    this.#inARow = 0;
    this.#open = undefined;
  }

  /** Records a refused step. Returns why the run ends, if it does. */
  add(status: number, body: string): RunFailure | undefined {
    const {
      failure,
      isTransient,
      isTooLong = false,
    } = callFailure(this.#provider, { statusCode: status, message: messageIn(body) });
    this.#inARow += 1;
    if (!isTransient) this.#open = failure;
    const triesMax = isTransient || isTooLong ? TRANSIENT_MAX : FINAL_STATUS.includes(status) ? 1 : TRIES_MAX;
    return this.#inARow >= triesMax ? failure : undefined;
  }
}

/** Returns the provider's message from the body of a refusal, or the body if it contains none. */
function messageIn(body: string): string {
  const parsed = parsedJson(body);
  const [first] = Array.isArray(parsed) ? parsed : [parsed];
  const error = isAnObject(first) ? first["error"] : undefined;
  return (
    (typeof error === "string" && error) ||
    (isAnObject(first) && (textAt(objectAt(first, "error"), "message") || textAt(first, "message"))) ||
    body
  );
}
