import type { JsonObject } from "@bufbuild/protobuf";

/** Thrown if a tool failed. The message is for the agent; `output` may also be shown. */
export class ToolFailure extends Error {
  readonly output: JsonObject;
  constructor(message: string, output: JsonObject = {}) {
    super(message);
    this.name = "ToolFailure";
    this.output = output;
  }
}
