import type { ServerResponse } from "node:http";
import { parsedJson } from "./json-rpc.ts";
import type { TokenCounts } from "../context/platform-client.ts";
import { charactersIn, countsIn, isEnd } from "../model/wires/token-counts.ts";
import type { GatewayEnding } from "./gateway-wires.ts";

const DATA = "data:";

/** A provider's response that is relayed to an agent program, and its token counts. */
export class RelayedResponse {
  /** The provider's counts so far. */
  counted: TokenCounts = {};
  /** The characters of the response's text so far. */
  characters = 0;
  /** Whether the response is complete. */
  isComplete = false;

  /** Whether the provider has counted input and output. */
  get isCounted(): boolean {
    return this.counted.inputTokens !== undefined && this.counted.outputTokens !== undefined;
  }

  /**
   * Relays the response as it arrives. `assertOpen` is called before each chunk. `ending` returns the last part of a
   * stream that the gateway cuts off. Never rejects.
   */
  async pass(
    providerResponse: Response,
    response: ServerResponse,
    { assertOpen, ending }: { readonly assertOpen: () => void; readonly ending: () => GatewayEnding | undefined },
  ): Promise<void> {
    const isStream = (providerResponse.headers.get("content-type") ?? "").includes("event-stream");
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of providerResponse.body ?? []) {
        assertOpen();
        if (response.destroyed) throw new Error("The agent program has closed the call.");
        if (!response.write(chunk))
          await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
        rest += decoder.decode(chunk as Uint8Array, { stream: true });
        if (!isStream) continue;
        const lines = rest.split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) if (line.startsWith(DATA)) this.#read(line.slice(DATA.length));
      }
      if (!isStream) {
        this.#read(rest);
        this.isComplete = true;
      }
      response.end();
    } catch {
      const last = isStream && rest === "" ? ending() : undefined; // nothing can be appended in the middle of a line
      if (last) response.end(last.body);
      else response.destroy();
    }
  }

  #read(text: string): void {
    const value = parsedJson(text);
    if (value === undefined) return;
    this.counted = { ...this.counted, ...countsIn(value) };
    this.characters += charactersIn(value);
    this.isComplete ||= isEnd(value);
  }
}
