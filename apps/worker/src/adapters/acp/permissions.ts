import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject, objectAt, textAt } from "../../model/event-fields.ts";
import { isPlatformTool } from "../platform-mcp.ts";
import type { AcpDialect } from "./acp-dialect.ts";

/** Kinds of calls that change nothing. */
const LOOKS = ["read", "search", "think"];

/** Whether a call only looks, or is one of the platform's, which judges for itself what a plan may do. */
export const isReadOnlyCall = (call: JsonObject, { toolOf }: AcpDialect): boolean =>
  LOOKS.includes(textAt(call, "kind")) ||
  isPlatformTool(toolOf({ id: textAt(call, "toolCallId"), title: textAt(call, "title") }));

/** The answer to a request for permission: the sandbox is the border, so everything is allowed once that `isAllowed`. Never for longer, for what is allowed may change. */
export function permitted(params: JsonObject, isAllowed: (call: JsonObject) => boolean): JsonObject {
  const { options } = params;
  const wanted = isAllowed(objectAt(params, "toolCall"))
    ? ["allow_once", "allow_always"]
    : ["reject_once", "reject_always"];
  const offered = Array.isArray(options) ? options.filter(isAnObject) : [];
  const option = wanted.map((kind) => offered.find((one) => one["kind"] === kind)).find((found) => found !== undefined);
  return { outcome: option ? { outcome: "selected", optionId: textAt(option, "optionId") } : { outcome: "cancelled" } };
}
