import type { ApiClient } from "@millwright/api-client";
import type { Paint } from "@millwright/terminal";

/** A text to print, or several parts of one with the style of each. */
export type Printed = string | readonly { readonly text: string; readonly style?: keyof Paint }[];

/**
 * What a command may use: the platform, the terminal, and the output format that the user asked for. Whatever it prints
 * is stripped of control sequences.
 */
export type Cli = {
  api(): ApiClient;
  env: NodeJS.ProcessEnv;
  /** Whether `--json` was given. */
  readonly isJson: boolean;
  /** Whether charts are plain ASCII: the output is no terminal, or NO_COLOR is set. */
  readonly isPlain: boolean;
  /** Prints a record or list: JSON with `--json`, otherwise the result of `human`. */
  show(value: unknown, human: () => Printed): void;
  readonly print: (text: Printed) => void;
  /** Prints JSON or JSON Lines as they are; control characters in them are escaped. */
  readonly printJson: (json: string) => void;
  readonly printError: (text: string) => void;
};

export type Option = {
  readonly type: "string" | "boolean";
  /** Whether it may be given several times. */
  readonly multiple?: boolean;
  /** The allowed values; several may be given with commas between. */
  readonly choices?: readonly string[];
};

export type Values = Record<string, string | boolean | (string | boolean)[] | undefined>;

export type Command = {
  /** The words that select it, such as "factory apply". */
  words: string;
  /** Positional arguments; `[X]` is optional, `X...` is one or more (after `--` whatever they are). */
  args: string[];
  summary: string;
  options?: Record<string, Option>;
  /** Allowed values of positional arguments, by name. */
  choices?: Record<string, readonly string[]>;
  /** `--team` does not name the team in which the command acts. */
  ignoresTeam?: boolean;
  /** Returns the exit code; nothing means 0. */
  run(cli: Cli, args: string[], values: Values): Promise<number | void>;
};

/** Exit codes of the client: scripts rely on them. */
export const EXIT = { done: 0, failed: 1, usage: 2, notAuthorised: 3, notFound: 4 } as const;

/** Thrown if the command line is invalid; the message states the reason. */
export class UsageError extends Error {}

/** Thrown if something that the command line names does not exist. */
export class NotFound extends Error {}

/** Returns `text` if it is safe as one segment of a URL path. Throws `UsageError` otherwise. */
export function checkedId(text: string, what: string): string {
  if (!/^[^\s/\\?#%]+$/.test(text) || /^\.+$/.test(text))
    throw new UsageError(`${JSON.stringify(text)} is not a valid ${what}.`);
  return text;
}

/** Returns `text` if it is an http(s) URL. Throws `UsageError` otherwise. */
export function checkedUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new UsageError(`${text} is not the URL of a platform: it must begin with http:// or https://.`);
  return text;
}

/** An option's text value, or undefined when it was not given. */
export const textOption = (values: Values, name: string): string | undefined => {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
};

/** An option that may be given several times. */
export const textOptions = (values: Values, name: string): string[] => {
  const value = values[name];
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
};

/** Returns undefined for an empty list, so that a request does not contain it. */
export const nonEmpty = <T>(list: T[]): T[] | undefined => (list.length > 0 ? list : undefined);

/** Returns the numeric value of an argument or option. Throws `UsageError` if it is not a number. */
export function numberOf(text: string | undefined, name: string): number {
  const value = Number(text);
  if (text === undefined || text === "" || !Number.isFinite(value))
    throw new UsageError(`${name} must be a number (got ${JSON.stringify(text ?? "")}).`);
  return value;
}
