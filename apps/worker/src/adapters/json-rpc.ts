import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isAnObject, objectAt, textAt } from "../model/event-fields.ts";

/** Thrown if the peer rejected a request. The message is the peer's. */
export class RpcRefused extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = "RpcRefused";
    this.code = code;
  }
}

export type JsonRpcDeps = {
  readonly send: (line: string) => void;
  /** Returns whether the notification is known. */
  readonly onNotification: (method: string, params: JsonObject) => boolean;
  /** Receives a line that is not a message or has no known purpose. */
  readonly onUnknown: (line: string) => void;
  /** Returns the response to a request of the peer; undefined: unknown method. */
  readonly onRequest: (method: string, params: JsonObject) => JsonValue | undefined;
};

const METHOD_NOT_FOUND = -32_601;

/** JSON-RPC 2.0 over lines, in both directions. Pending requests to a program that ends never settle. */
export class JsonRpc {
  readonly #deps: JsonRpcDeps;
  readonly #open = new Map<
    number,
    { readonly resolve: (result: JsonObject) => void; readonly reject: (error: RpcRefused) => void }
  >();
  #count = 0;

  constructor(deps: JsonRpcDeps) {
    this.#deps = deps;
  }

  /** Sends a request and returns its result. Throws `RpcRefused`. */
  request(method: string, params: JsonObject): Promise<JsonObject> {
    const id = (this.#count += 1);
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  notify(method: string, params: JsonObject = {}): void {
    this.#send({ method, params });
  }

  /** Handles one line. */
  receive(line: string): void {
    const message = parsedLine(line);
    const { onNotification, onRequest, onUnknown } = this.#deps;
    if (!message) return onUnknown(line);
    const { id, method } = message;
    if (typeof method !== "string") return this.#settleRequest(id, message) ? undefined : onUnknown(line);
    if (id === undefined || id === null)
      return onNotification(method, objectAt(message, "params")) ? undefined : onUnknown(line);
    const result = onRequest(method, objectAt(message, "params"));
    if (result === undefined) onUnknown(line);
    this.#send(
      result === undefined
        ? { id, error: { code: METHOD_NOT_FOUND, message: `Unknown method "${method}".` } }
        : { id, result },
    );
  }

  /** Settles the pending request of a response. Returns false if there is none. */
  #settleRequest(id: unknown, message: JsonObject): boolean {
    const asked = typeof id === "number" ? this.#open.get(id) : undefined;
    if (!asked) return false;
    this.#open.delete(id as number);
    const { error } = message;
    if (isAnObject(error))
      asked.reject(new RpcRefused(typeof error["code"] === "number" ? error["code"] : 0, reasonIn(error)));
    else asked.resolve(objectAt(message, "result"));
    return true;
  }

  #send(message: JsonObject): void {
    this.#deps.send(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}

/** Returns the reason of an error. Some peers send only a generic message, with the cause in `data.details`. */
function reasonIn(error: JsonObject): string {
  const parts = [textAt(error, "message"), textAt(objectAt(error, "data"), "details")].filter((text) => text !== "");
  return parts.join(": ") || "It gave no reason.";
}

/** Parses a line as an object; returns undefined if it is not one. */
export function parsedLine(line: string): JsonObject | undefined {
  const value = parsedJson(line);
  return isAnObject(value) ? value : undefined;
}

/** Parses a JSON text; returns undefined if it is invalid. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
