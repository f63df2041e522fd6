import { createHash } from "node:crypto";

/** The longest name that every wire takes. */
const LENGTH_MAX = 64;
const HASH_LENGTH = 8;

/** How agents call a tool of a server: `mcp__<server>__<tool>`, in characters that every wire takes; a long name ends in a hash of the whole. */
export function mcpToolName(server: string, tool: string): string {
  const name = `mcp__${plain(server)}__${plain(tool)}`;
  return name.length <= LENGTH_MAX ? name : distinctName(name, server, tool);
}

/** A name for a tool whose own is taken: two may differ only in characters that wires do not take. */
export function distinctName(name: string, server: string, tool: string): string {
  const hash = createHash("sha256").update(`${server}\0${tool}`).digest("hex").slice(0, HASH_LENGTH);
  return `${name.slice(0, LENGTH_MAX - HASH_LENGTH - 1)}_${hash}`;
}

const plain = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]/g, "_");
