import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject, objectAt, textAt } from "../../model/event-fields.ts";
import { isPlatformTool } from "../platform-mcp.ts";
import type { AcpDialect } from "./acp-dialect.ts";

/** Kinds of calls that change nothing. */
const READ_ONLY_KINDS = ["read", "search", "think"];

/** Returns whether a call is read-only or one of the platform's tools, which enforce plan mode themselves. */
export const isReadOnlyCall = (call: JsonObject, { toolOf }: AcpDialect): boolean =>
  READ_ONLY_KINDS.includes(textAt(call, "kind")) ||
  isPlatformTool(toolOf({ id: textAt(call, "toolCallId"), title: textAt(call, "title") }));

/**
 * Returns the response to a permission request. The sandbox is the security boundary, so everything that `isAllowed`
 * accepts is permitted; only once, because what is allowed may change.
 */
export function permitted(params: JsonObject, isAllowed: (call: JsonObject) => boolean): JsonObject {
  const { options } = params;
  const wanted = isAllowed(objectAt(params, "toolCall"))
    ? ["allow_once", "allow_always"]
    : ["reject_once", "reject_always"];
  const offered = Array.isArray(options) ? options.filter(isAnObject) : [];
  const option = wanted
    .map((kind) => offered.find((candidate) => candidate["kind"] === kind))
    .find((match) => match !== undefined);
  return { outcome: option ? { outcome: "selected", optionId: textAt(option, "optionId") } : { outcome: "cancelled" } };
}
