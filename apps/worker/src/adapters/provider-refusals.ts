import type { RunFailure } from "../model/model-provider.ts";
import { callFailure } from "../model/wires/call-failure.ts";
import { objectAt, textAt, isAnObject } from "../model/event-fields.ts";
import { parsedJson } from "./json-rpc.ts";

/** Refusals that no other request of the program avoids: of the key, the account or the model. */
const FINAL_STATUS = [401, 402, 403, 404];
/** A program may change its request once and try again, such as without a field that the provider does not know. */
const TRIES_MAX = 2;
/** Refusals that may pass, one after the other: programs give up long before. */
const PASSING_MAX = 200;

/**
 * Refusals of the provider as an agent program gets them. One that is final ends the run by the mapping that the platform's own agent has
 * (`callFailure`): at once where nothing else can come of it, else when the program tries the same again or ends its turn with it.
 */
export class ProviderRefusals {
  readonly #provider: string;
  #inARow = 0;
  #open: RunFailure | undefined;

  constructor(provider: string) {
    this.#provider = provider;
  }

  /** The final refusal that the program got last; undefined if it got an answer since. */
  get open(): RunFailure | undefined {
    return this.#open;
  }

  /** A step was answered, or a turn begins. */
  clear(): void {
    this.#inARow = 0;
    this.#open = undefined;
  }

  /** Notes a refused step; returns why the run ends, if it does. */
  add(status: number, body: string): RunFailure | undefined {
    const {
      failure,
      mayPass,
      isTooLong = false,
    } = callFailure(this.#provider, { statusCode: status, message: messageIn(body) });
    this.#inARow += 1;
    if (!mayPass) this.#open = failure;
    const triesMax = mayPass || isTooLong ? PASSING_MAX : FINAL_STATUS.includes(status) ? 1 : TRIES_MAX;
    return this.#inARow >= triesMax ? failure : undefined;
  }
}

/** The provider's own words in the body of a refusal; the body where they are not found. */
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
