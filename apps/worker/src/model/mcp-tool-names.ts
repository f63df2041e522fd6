import { createHash } from "node:crypto";

/** The maximum length of a tool name that every provider protocol accepts. */
const LENGTH_MAX = 64;
const HASH_LENGTH = 8;

/**
 * Returns the name by which agents call a server's tool: `mcp__<server>__<tool>`, in characters that every provider
 * protocol accepts. A long name ends with a hash of the full name.
 */
export function mcpToolName(server: string, tool: string): string {
  const name = `mcp__${plain(server)}__${plain(tool)}`;
  return name.length <= LENGTH_MAX ? name : distinctName(name, server, tool);
}

/**
 * Returns a unique name for a tool whose name is taken: two names may differ only in characters that the protocols do
 * not accept.
 */
export function distinctName(name: string, server: string, tool: string): string {
  const hash = createHash("sha256").update(`${server}\0${tool}`).digest("hex").slice(0, HASH_LENGTH);
  return `${name.slice(0, LENGTH_MAX - HASH_LENGTH - 1)}_${hash}`;
}

const plain = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]/g, "_");
