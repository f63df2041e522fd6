import { parseDuration } from "./duration.ts";
import { parseSize } from "./size.ts";

/** One environment variable: its name, and how its text becomes a value. */
export type Setting<T> = {
  readonly name: string;
  /** Returns the value, or a message about the fault that never contains the value. */
  read(text: string | undefined): { readonly value: T } | { readonly fault: string };
};

type Parse<T> = (text: string) => T | undefined;

const parsers = {
  string: (text: string) => text,
  url: (text: string) => (URL.canParse(text) ? text.replace(/\/+$/, "") : undefined),
  int: (text: string) => (/^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined),
  bool: (text: string) =>
    /^(true|1|yes|on)$/i.test(text) ? true : /^(false|0|no|off)$/i.test(text) ? false : undefined,
  duration: parseDuration,
  size: parseSize,
  list: (text: string) => partsOf(text),
  urls: (text: string) => {
    const parts = partsOf(text);
    return parts.length > 0 && parts.every((part) => URL.canParse(part))
      ? parts.map((part) => part.replace(/\/+$/, ""))
      : undefined;
  },
};

function partsOf(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

const EXPECTED: Record<keyof typeof parsers, string> = {
  string: "a text",
  url: "an absolute URL",
  int: "a whole number from 0",
  bool: "true or false",
  duration: 'a duration such as "15s"',
  size: 'a size such as "512M" or "4G"',
  list: "a comma-separated list",
  urls: "one absolute URL, or several with commas between",
};

const mandatory =
  <T>(kind: keyof typeof parsers, parse: Parse<T>) =>
  (name: string): Setting<T> => ({
    name,
    read(text) {
      if (text === undefined || text === "") return { fault: `is required (${EXPECTED[kind]})` };
      const value = parse(text);
      return value === undefined ? { fault: `must be ${EXPECTED[kind]}` } : { value };
    },
  });

/**
 * Defines a setting with an optional fallback, written like the variable's text: `optional.duration("TTL", "15s")`.
 */
type OptionalSetting<T, F> = {
  (name: string): Setting<T | undefined>;
  (name: string, fallback: F): Setting<T>;
};

function voluntary<T, F extends string | number | boolean | readonly string[]>(
  kind: keyof typeof parsers,
  parse: Parse<T>,
): OptionalSetting<T, F> {
  const make = (name: string, fallback?: F): Setting<T | undefined> => ({
    name,
    read(text) {
      const given = text === undefined || text === "" ? fallback : text;
      if (given === undefined) return { value: undefined };
      const value = parse(String(given));
      return value === undefined ? { fault: `must be ${EXPECTED[kind]}` } : { value };
    },
  });
  return make as OptionalSetting<T, F>; // with a fallback the value is never undefined
}

/** Settings that the service needs to start. An empty text counts as absent. URLs lose trailing slashes. */
export const required = {
  string: mandatory("string", parsers.string),
  url: mandatory("url", parsers.url),
  /** A secret text; faults name the variable only. */
  secret: mandatory("string", parsers.string),
  int: mandatory("int", parsers.int),
  duration: mandatory("duration", parsers.duration),
  /** One or more URLs, separated by commas. */
  urls: mandatory("urls", parsers.urls),
};

/** Settings that may be absent, with or without a fallback. Durations are parsed as milliseconds, sizes as bytes. */
export const optional = {
  string: voluntary<string, string>("string", parsers.string),
  url: voluntary<string, string>("url", parsers.url),
  secret: voluntary<string, string>("string", parsers.string),
  int: voluntary<number, number>("int", parsers.int),
  bool: voluntary<boolean, boolean>("bool", parsers.bool),
  duration: voluntary<number, string>("duration", parsers.duration),
  size: voluntary<number, string>("size", parsers.size),
  list: voluntary<string[], readonly string[]>("list", parsers.list),
};
