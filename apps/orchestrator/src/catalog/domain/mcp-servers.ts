import { invalidArgument, type DomainError } from "@millwright/errors";

type JsonObject = { readonly [key: string]: unknown };

/**
 * An MCP server as stored with a run: a command or a URL. With `managed_id` alone, it references a managed server that
 * the operator has not registered.
 */
export type FrozenMcpServer = {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly managed_id?: string;
};

/** MCP servers that the operator has registered, by id. */
export type ManagedMcpServers = Readonly<Record<string, FrozenMcpServer>>;

const SERVERS_MAX = 20;
const NAME_CHARACTERS_MAX = 100;
const BYTES_MAX = 32 * 1024;
/** The further members that each kind of server may have. */
const KINDS = { command: ["args", "env"], url: ["headers", "env"], warp_id: ["env"] } as const;

/**
 * Returns a checked map of servers (McpServerConfig). Each has exactly one of `warp_id`, `command` and `url`. Null
 * members and unknown members are ignored. Errors: config_invalid naming the field.
 */
export function checkMcpServers(servers: JsonObject, where = "mcp_servers"): JsonObject {
  const names = Object.keys(servers);
  if (names.length > SERVERS_MAX) throw invalid(where, `names more than ${SERVERS_MAX} servers`);
  if (Buffer.byteLength(JSON.stringify(servers)) > BYTES_MAX) throw invalid(where, `has more than ${BYTES_MAX} bytes`);
  for (const name of names) checkServer(servers[name], `${where}.${name.slice(0, NAME_CHARACTERS_MAX)}`, name);
  return servers;
}

function checkServer(server: unknown, where: string, name: string): void {
  if (name.trim() === "" || name.length > NAME_CHARACTERS_MAX)
    throw invalid(where, `: a server's name has 1 to ${NAME_CHARACTERS_MAX} characters`);
  if (!isObject(server)) throw invalid(where, "must be an object");
  const kinds = Object.keys(KINDS).filter(
    (kind) => (server[kind] ?? undefined) !== undefined,
  ) as (keyof typeof KINDS)[];
  const [kind] = kinds;
  if (kinds.length !== 1 || !kind) throw invalid(where, "must have exactly one of warp_id, command and url");
  if (typeof server[kind] !== "string" || server[kind].trim() === "")
    throw invalid(`${where}.${kind}`, "must be a text that is not empty");
  if (kind === "url" && !isHttpUrl(server[kind])) throw invalid(`${where}.url`, "must be an http or https URL");
  for (const key of ["args", "headers"] as const) {
    if ((server[key] ?? undefined) !== undefined && !(KINDS[kind] as readonly string[]).includes(key))
      throw invalid(`${where}.${key}`, `does not apply to a server with ${kind}`);
  }
  const args = server["args"] ?? [];
  if (!Array.isArray(args) || !args.every((argument) => typeof argument === "string"))
    throw invalid(`${where}.args`, "must be a list of texts");
  for (const key of ["env", "headers"] as const)
    checkTexts(server[key] ?? {}, `${where}.${key}`, key === "env" ? VARIABLE : HEADER);
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function checkTexts(texts: unknown, where: string, form: RegExp): void {
  if (!isObject(texts)) throw invalid(where, "must be an object");
  for (const [name, value] of Object.entries(texts)) {
    if (!form.test(name))
      throw invalid(`${where}.${name.slice(0, NAME_CHARACTERS_MAX)}`, "has a name that cannot be sent");
    if (typeof value !== "string" || /[\0\r\n]/.test(value))
      throw invalid(`${where}.${name}`, "must be a text of one line");
  }
}

/**
 * Returns the servers as stored with a run, by name. References are replaced by the servers that the operator has
 * registered.
 */
export function frozenMcpServers(
  servers: JsonObject,
  managed: ManagedMcpServers,
): Readonly<Record<string, FrozenMcpServer>> {
  return Object.fromEntries(
    Object.entries(servers).map(([name, server]) => [name, frozen(server as JsonObject, managed)]),
  );
}

function frozen(server: JsonObject, managed: ManagedMcpServers): FrozenMcpServer {
  const {
    warp_id: id,
    command,
    args,
    env,
    url,
    headers,
  } = server as {
    warp_id?: string;
    command?: string;
    args?: string[];
    env?: Record<string, string>;
    url?: string;
    headers?: Record<string, string>;
  };
  if (!id)
    return {
      ...(command ? { command, args: args ?? [] } : {}),
      ...(url ? { url, headers: headers ?? {} } : {}),
      ...(env ? { env } : {}),
    };
  const registered = Object.hasOwn(managed, id) ? managed[id] : undefined;
  return { ...registered, ...(registered?.env || env ? { env: { ...registered?.env, ...env } } : {}), managed_id: id };
}

/**
 * Matches names of variables and headers whose values are likely to be secrets. The worker masks literal values of such
 * names by the same rule.
 */
const SENSITIVE = /auth|token|key|secret|passw|cookie|credential/i;
const MASKED = "***";

/**
 * Returns the servers as shown by the public API. Secrets that are literal values, not references `${NAME}`, are
 * masked.
 */
export const shownMcpServers = (servers: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(servers).map(([name, server]) => {
      const { env, headers, url } = server as { env?: JsonObject; headers?: JsonObject; url?: unknown };
      const shown = {
        ...(env ? { env: maskedTexts(env) } : {}),
        ...(headers ? { headers: maskedTexts(headers) } : {}),
        ...(typeof url === "string" ? { url: withoutPassword(url) } : {}),
      };
      return [name, { ...(server as JsonObject), ...shown }];
    }),
  );

/** Returns the values with likely secrets masked. A reference to a secret does not reveal it, so it is not masked. */
const maskedTexts = (texts: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(texts).map(([name, value]) => [
      name,
      SENSITIVE.test(name) && typeof value === "string" && value !== "" && !value.includes("${") ? MASKED : value,
    ]),
  );

const withoutPassword = (url: string): string =>
  url.replace(/^(https?:\/\/[^/?#@]*?:)((?!\$\{)[^/?#@]+)@/i, `$1${MASKED}@`);

/**
 * Returns the managed servers from their JSON text: `{"<id>": {command …} or {url …}}`. Throws an error that names the
 * invalid member.
 */
export function readManagedMcpServers(json: string): ManagedMcpServers {
  if (json.trim() === "") return {};
  const servers: unknown = JSON.parse(json);
  if (!isObject(servers)) throw new Error("must be a JSON object");
  return frozenMcpServers(checkMcpServers(servers, "MILLWRIGHT_MCP_SERVERS"), {});
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns whether a text is an http(s) URL. References `${NAME}` may be part of a URL, so each is replaced by a letter
 * before parsing.
 */
function isHttpUrl(text: string): boolean {
  const filled = text.replaceAll(/\$\{[^}]*\}/g, "x");
  return URL.canParse(filled) && ["http:", "https:"].includes(new URL(filled).protocol);
}

const invalid = (where: string, text: string): DomainError =>
  invalidArgument("config_invalid", `config.${where} ${text}.`, { key: where });
