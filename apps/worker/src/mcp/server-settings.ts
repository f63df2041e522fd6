import type { worker } from "@millwright/contracts";

/** How a server of tools is reached, with everything in it that stood for something else. */
export type ServerSettings =
  | { readonly transport: "stdio"; readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> }
  | { readonly transport: "http"; readonly url: string; readonly headers: Readonly<Record<string, string>> };

/** A server that cannot be used as it is configured; the text is for people. */
export class ServerMisconfigured extends Error {}

/**
 * Reads the configuration of a server. `${NAME}` stands for a variable or a secret of the run, and `$${` for itself.
 * Errors: ServerMisconfigured, for a managed server that nobody has registered, and for a name that the run does not have.
 */
export function serverSettings(server: worker.McpServer, known: Readonly<Record<string, string>>): ServerSettings {
  const fill = (text: string): string =>
    text.replaceAll(/\$(\$\{|\{([^}]*)\})/g, (_whole, escaped: string, name: string | undefined) =>
      name === undefined ? escaped : valueOf(name, known),
    );
  const filled = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
  if (server.command !== "")
    return { transport: "stdio", argv: [server.command, ...server.args.map(fill)], env: filled(server.env) };
  if (server.url !== "") return { transport: "http", url: fill(server.url), headers: filled(server.headers) };
  throw new ServerMisconfigured(`No managed MCP server "${server.managedId}" is registered with this platform.`);
}

function valueOf(name: string, known: Readonly<Record<string, string>>): string {
  const value = Object.hasOwn(known, name) ? known[name] : undefined;
  if (value === undefined)
    throw new ServerMisconfigured(
      `Its configuration names \${${name}}, which is neither a variable nor a secret of this run.`,
    );
  return value;
}

const SENSITIVE = /auth|token|key|secret|passw|cookie|credential/i;
const LENGTH_MIN = 8;

/** What is written into a configuration itself and looks like a secret, by the name of its header or variable: masked like the run's secrets. */
export function literalSecrets(servers: readonly worker.McpServer[]): string[] {
  const values = servers.flatMap(({ env, headers }) =>
    Object.entries({ ...env, ...headers }).flatMap(([name, value]) => (SENSITIVE.test(name) ? [value] : [])),
  );
  const parts = values.flatMap((value) => [value, ...value.split(/[\s,;=]+/)]);
  return [...new Set(parts)].filter((part) => part.length >= LENGTH_MIN && !part.includes("${"));
}
