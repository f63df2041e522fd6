/** A path of members and indices, such as `$.checks[0]["exit code"]`. */
export type JsonPath = readonly (string | number)[];

const PART = /^(?:\.([A-Za-z_][\w-]*)|\[(\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]|\['([^'\\]*)'\])/;

/**
 * Parses a path of members and indices. Returns undefined for all other texts; wildcards, filters and recursion are not
 * supported.
 */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (!text.startsWith("$")) return undefined;
  const path: (string | number)[] = [];
  for (let rest = text.slice(1); rest !== "";) {
    const found = PART.exec(rest);
    if (!found) return undefined;
    const [part, member, index, quoted, single] = found;
    const name = member ?? single ?? unquoted(quoted);
    if (index === undefined && name === undefined) return undefined;
    path.push(index === undefined ? name! : Number(index));
    rest = rest.slice(part.length);
  }
  return path;
}

/** Returns the value at a path, or undefined if there is none. */
export function readJsonPath(value: unknown, path: JsonPath): unknown {
  let current = value;
  for (const part of path) {
    if (typeof part === "number") {
      if (!Array.isArray(current)) return undefined;
      current = current[part];
    } else {
      if (current === null || typeof current !== "object" || Array.isArray(current) || !Object.hasOwn(current, part))
        return undefined;
      current = (current as { [key: string]: unknown })[part];
    }
  }
  return current;
}

function unquoted(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return undefined;
  }
}
