import type { ServerResponse } from "node:http";
import { parsedJson } from "./json-rpc.ts";
import type { TokenCounts } from "../executions/execution-context.ts";
import { charactersIn, countsIn, isEnd } from "../model/wires/token-counts.ts";
import type { GatewayEnding } from "./gateway-wires.ts";

const DATA = "data:";

/** A provider's response on its way to an agent program, and its token counts. */
export class RelayedResponse {
  /** By the provider, so far. */
  counted: TokenCounts = {};
  /** Of the answer's text, so far. */
  characters = 0;
  /** The response is complete. */
  isWhole = false;

  /** Whether the provider has counted input and output. */
  get isCounted(): boolean {
    return this.counted.inputTokens !== undefined && this.counted.outputTokens !== undefined;
  }

  /**
   * Relays the response as it arrives. `assertOpen` is called before each piece; `ending` closes a stream that we cut.
   * Never rejects.
   */
  async pass(
    answer: Response,
    response: ServerResponse,
    { assertOpen, ending }: { readonly assertOpen: () => void; readonly ending: () => GatewayEnding | undefined },
  ): Promise<void> {
    const isStream = (answer.headers.get("content-type") ?? "").includes("event-stream");
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of answer.body ?? []) {
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
        this.isWhole = true;
      }
      response.end();
    } catch {
      const last = isStream && rest === "" ? ending() : undefined; // in the middle of a line nothing can be added
      if (last) response.end(last.body);
      else response.destroy();
    }
  }

  #read(text: string): void {
    const value = parsedJson(text);
    if (value === undefined) return;
    this.counted = { ...this.counted, ...countsIn(value) };
    this.characters += charactersIn(value);
    this.isWhole ||= isEnd(value);
  }
}
