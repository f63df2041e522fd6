import type { worker } from "@millwright/contracts";

/** How an MCP server is reached, with all placeholders replaced. */
export type ServerSettings =
  | { readonly transport: "stdio"; readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> }
  | { readonly transport: "http"; readonly url: string; readonly headers: Readonly<Record<string, string>> };

/** Thrown for a server that cannot be used with its configuration. The message is for users. */
export class ServerMisconfigured extends Error {}

/**
 * Returns the settings of a server. `${NAME}` is replaced by a variable or a secret of the run, and `$${` by `${`.
 * Throws `ServerMisconfigured` for an unregistered managed server and for a name that the run does not have.
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

/**
 * Returns literal values of a configuration that are probably secrets, judging by the names of their headers or
 * variables. They are masked like the run's secrets.
 */
export function literalSecrets(servers: readonly worker.McpServer[]): string[] {
  const values = servers.flatMap(({ env, headers }) =>
    Object.entries({ ...env, ...headers }).flatMap(([name, value]) => (SENSITIVE.test(name) ? [value] : [])),
  );
  const parts = values.flatMap((value) => [value, ...value.split(/[\s,;=]+/)]);
  return [...new Set(parts)].filter((part) => part.length >= LENGTH_MIN && !part.includes("${"));
}
