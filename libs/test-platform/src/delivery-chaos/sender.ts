import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { Target } from "./targets.ts";

const RESPONSE_TIMEOUT_MS = 30_000;
const PAUSE_MAX_MS = 1_000;

export type DeliveryResponse = { readonly status: number; readonly deliveryId: string | undefined };

/** Sends deliveries round-robin to several replicas over persistent connections. */
export class Sender {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  readonly #urls: readonly string[];
  #sent = 0;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** Sends one attempt. Resolves to undefined if there was no complete response. */
  attempt(to: Target, id: string, body: string): Promise<DeliveryResponse | undefined> {
    const url = this.#urls[this.#sent++ % this.#urls.length]! + to.path;
    const headers = {
      authorization: `Bearer ${to.secret}`,
      "x-service-delivery-id": id,
      "content-length": Buffer.byteLength(body),
    };
    return new Promise((resolve) => {
      const sent = request(
        url,
        { method: "POST", agent: this.#agent, headers, timeout: RESPONSE_TIMEOUT_MS },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          response
            .once("error", () => resolve(undefined))
            .once("end", () => resolve({ status: response.statusCode ?? 0, deliveryId: deliveryIdIn(text) }));
        },
      );
      sent
        .once("timeout", () => sent.destroy())
        .once("error", () => resolve(undefined))
        .end(body);
    });
  }

  /**
   * Sends attempts until the delivery is accepted. Throws if it is rejected, or not accepted within `stallTimeoutMs`.
   */
  async deliver(to: Target, id: string, body: string, stallTimeoutMs: number): Promise<void> {
    let last: DeliveryResponse | undefined;
    for (let attempt = 0, deadline = Date.now() + stallTimeoutMs; Date.now() < deadline; attempt++) {
      last = await this.attempt(to, id, body);
      if (last?.status === 202 && last.deliveryId === id) return;
      if (last && last.status < 500 && last.status !== 429) break;
      await pause(Math.min(50 * 2 ** attempt, PAUSE_MAX_MS));
    }
    throw new Error(`${id} was not accepted: ${JSON.stringify(last)}`);
  }

  close(): void {
    this.#agent.destroy();
  }
}

function deliveryIdIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { delivery_id?: string }).delivery_id;
  } catch {
    return undefined; // The connection broke within the body.
  }
}
