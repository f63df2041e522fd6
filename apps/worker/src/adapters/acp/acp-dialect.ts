import type { JsonObject } from "@bufbuild/protobuf";

/** What agents of the Agent Client Protocol do each in their own way. */
export type AcpDialect = {
  /** The tool that a call is of, as the agent itself names it, and `mcp__millwright__…` for the platform's; "" = it does not tell. */
  readonly toolOf: (call: { readonly id: string; readonly title: string }) => string;
  /** What is cancelled while the model answers is lost: only tools are, and the model's answer has its end from elsewhere. */
  readonly cancelsToolsOnly?: boolean;
  /** What the agent counted in a turn, by its answer to the prompt; undefined: nothing that can be added up. */
  readonly countedIn: (answer: JsonObject) => JsonObject | undefined;
};
