import type { JsonObject } from "@bufbuild/protobuf";

/** The differences between agents that use the Agent Client Protocol. */
export type AcpDialect = {
  /** The tool of a call, as the agent names it, and `mcp__millwright__…` for the platform's; "" = not reported. */
  readonly toolOf: (call: { readonly id: string; readonly title: string }) => string;
  /** A cancel during a model response loses the turn: only tools are cancelled, and the gateway ends the response. */
  readonly cancelsToolsOnly?: boolean;
  /** What the agent counted in a turn, from its response to the prompt; undefined: nothing that can be added up. */
  readonly countedIn: (answer: JsonObject) => JsonObject | undefined;
};
