import type { JsonObject } from "@bufbuild/protobuf";

/** The differences between agents that use the Agent Client Protocol. */
export type AcpDialect = {
  /**
   * Returns the tool of a call under the agent's own name, `mcp__millwright__…` for the platform's tools, and "" if it
   * is not reported.
   */
  readonly toolOf: (call: { readonly id: string; readonly title: string }) => string;
  /**
   * Set if a cancel during a model response would lose the turn. Then only tools are cancelled, and the gateway ends
   * the response.
   */
  readonly cancelsToolsOnly?: boolean;
  /**
   * Returns the agent's token counts of a turn, from its response to the prompt; undefined if they cannot be added up.
   */
  readonly countedIn: (response: JsonObject) => JsonObject | undefined;
};
