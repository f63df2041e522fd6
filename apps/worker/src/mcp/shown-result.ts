import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { omitUndefined } from "@millwright/json";
import { HeadTail } from "../sandbox/init/head-tail.ts";
import { OUTPUT_BYTES_MAX } from "../sandbox/init/protocol.ts";

/** The part of a tool's result that the agent and users see. */
export type Shown = { readonly output: { text?: string; truncated?: boolean }; readonly isError: boolean };

/** Returns the texts of a result, masked and truncated in the middle. Other content is named but not shown. */
export function shownResult(
  { content, structuredContent, isError }: CallToolResult,
  mask: (text: string) => string,
): Shown {
  const parts = content.map(textOf).filter((part) => part !== "");
  const contents = parts.length === 0 && structuredContent ? JSON.stringify(structuredContent) : parts.join("\n\n");
  const shown = new HeadTail(OUTPUT_BYTES_MAX / 2);
  shown.push(Buffer.from(mask(contents)));
  const { text, truncated } = shown.text();
  return {
    output: omitUndefined({ text: text || undefined, truncated: truncated || undefined }),
    isError: isError === true,
  };
}

function textOf(part: CallToolResult["content"][number]): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "image":
    case "audio":
      return `[${part.type}, ${part.mimeType}, ${Math.floor((part.data.length * 3) / 4)} bytes: not shown]`;
    case "resource":
      return "text" in part.resource
        ? `${part.resource.uri}:\n${part.resource.text}`
        : `[resource ${part.resource.uri}: not shown]`;
    case "resource_link":
      return `[resource ${part.uri}${part.name === "" ? "" : `: ${part.name}`}]`;
    default:
      return part satisfies never;
  }
}
