import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject, objectAt, textAt } from "../../model/event-fields.ts";
import type { HarnessEvent } from "../harness-adapter.ts";

/** Returns an item of a thread as a tool call; undefined if it is not one. */
function callOf(item: JsonObject): { readonly name: string; readonly input: JsonObject } | undefined {
  switch (item["type"]) {
    case "commandExecution":
      return { name: "exec_command", input: { command: textAt(item, "command") } };
    case "fileChange":
      return {
        name: "apply_patch",
        input: { files: listAt(item, "changes").map((change) => ({ path: textAt(change, "path") })) },
      };
    case "mcpToolCall":
      return { name: `mcp__${textAt(item, "server")}__${textAt(item, "tool")}`, input: objectAt(item, "arguments") };
    case "dynamicToolCall":
    case "collabAgentToolCall":
      return {
        name: textAt(item, "tool"),
        input: item["type"] === "dynamicToolCall" ? objectAt(item, "arguments") : { prompt: textAt(item, "prompt") },
      };
    case "webSearch":
      return { name: "web_search", input: { query: textAt(item, "query") } };
    case "imageView":
      return { name: "view_image", input: { path: textAt(item, "path") } };
    default:
      return undefined;
  }
}

/** Items that are not shown in a run or that repeat others. */
const IGNORED_TYPES = [
  "userMessage",
  "agentMessage",
  "reasoning",
  "plan",
  "contextCompaction",
  "enteredReviewMode",
  "exitedReviewMode",
];

/** Returns whether this type of item is known. */
export const isKnownItem = (item: JsonObject): boolean =>
  callOf(item) !== undefined || IGNORED_TYPES.includes(textAt(item, "type"));

/** Returns the events of an item's start. */
export function itemBegan(item: JsonObject): HarnessEvent[] {
  const call = callOf(item);
  return call ? [{ t: "tool_start", id: textAt(item, "id"), ...call }] : [];
}

/** Returns the events of an item's completion. */
export function itemEnded(item: JsonObject): HarnessEvent[] {
  const text = textAt(item, "text");
  if (item["type"] === "agentMessage") return text === "" ? [] : [{ t: "message", text }];
  if (!callOf(item)) return [];
  const status = textAt(item, "status");
  return [
    { t: "tool_end", id: textAt(item, "id"), ok: status === "completed" || status === "", output: outputOf(item) },
  ];
}

function outputOf(item: JsonObject): string {
  switch (item["type"]) {
    case "commandExecution": {
      const [output, code] = [textAt(item, "aggregatedOutput"), item["exitCode"]];
      return typeof code === "number" && code !== 0
        ? `${output}${output === "" || output.endsWith("\n") ? "" : "\n"}Exit code ${code}`
        : output;
    }
    case "fileChange":
      return listAt(item, "changes")
        .map((change) => `${textAt(change, "path")}\n${textAt(change, "diff")}`)
        .join("\n");
    case "mcpToolCall":
      return (
        textAt(objectAt(item, "error"), "message") ||
        listAt(objectAt(item, "result"), "content")
          .map((part) => textAt(part, "text"))
          .join("\n")
      );
    default:
      return "";
  }
}

const listAt = (object: JsonObject, key: string): JsonObject[] => {
  const value = object[key];
  return Array.isArray(value) ? value.filter(isAnObject) : [];
};
