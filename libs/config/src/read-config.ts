import * as v from "valibot";
import type { Setting } from "./settings.ts";

/** The environment of a process. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The settings of a process: by key, or in named groups. */
export type Settings = { readonly [key: string]: Setting<unknown> | Settings };

/** The values of settings, in the same groups. */
export type ValuesOf<S> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : ValuesOf<S[K]>;
};

/** A condition on a combination of settings. */
export type Rule<V> = {
  /** The variables that it reads. It is checked only if each of them is valid. */
  readonly variables: readonly string[];
  /** Throws an Error if the condition is not met. Its message names the variables and contains no secret. */
  check(values: V): void;
};

/** Characters of an invalid value that a message repeats. */
const SHOWN_MAX = 100;

/**
 * Reads all settings of a process, once. Reports all problems at once, with the variable, its value (unless it may be
 * secret) and what is allowed.
 *
 * Errors: one plain Error that lists every problem; the process should print its message and exit.
 */
export function readConfig<S extends Settings>(
  env: Env,
  settings: S,
  rules: readonly Rule<ValuesOf<NoInfer<S>>>[] = [],
): ValuesOf<S> {
  const problems = new Map<string, string>();
  const values = readGroup(env, settings, problems) as ValuesOf<S>;
  const messages = [...problems.values()];
  for (const rule of rules) {
    if (rule.variables.some((name) => problems.has(name))) continue;
    try {
      rule.check(values);
    } catch (error) {
      messages.push((error as Error).message);
    }
  }
  if (messages.length > 0) throw invalidConfiguration(messages);
  return values;
}

/** Returns the error for problems of the configuration. */
export const invalidConfiguration = (messages: readonly string[]): Error =>
  new Error(`Invalid configuration:\n  ${messages.join("\n  ")}`);

/** Returns whether it is a setting and not a group. */
export const isSetting = (entry: Setting<unknown> | Settings): entry is Setting<unknown> => "schema" in entry;

function readGroup(env: Env, group: Settings, problems: Map<string, string>): object {
  const values: Record<string, unknown> = {};
  for (const [key, entry] of Object.entries(group))
    values[key] = isSetting(entry) ? readSetting(env, entry, problems) : readGroup(env, entry, problems);
  return Object.freeze(values);
}

/** Returns the frozen value; undefined if the variable is absent, or invalid, which is added to the problems. */
function readSetting(env: Env, setting: Setting<unknown>, problems: Map<string, string>): unknown {
  const { name, allowed, schema } = setting;
  const text = env[name];
  const isGiven = text !== undefined && (text !== "" || setting.allowsEmpty);
  const read = isGiven ? text : setting.defaultText;
  if (read === undefined) {
    if (setting.isRequired) problems.set(name, `${name} is required: ${allowed}.`);
    return undefined;
  }
  const result = v.safeParse(schema, read, { message: "" }); // only custom parsers add a message
  if (result.success) return typeof result.output === "object" ? Object.freeze(result.output) : result.output;
  problems.set(name, `${name} must be ${allowed} (got ${shown(setting, read)})${detailOf(result.issues[0].message)}.`);
  return undefined;
}

/** Returns the value for a message. A text with "@" or "?" may be a URL that contains credentials. */
function shown({ isSecret }: Setting<unknown>, text: string): string {
  if (isSecret || /[@?]/.test(text)) return "a value that may be secret";
  return JSON.stringify(text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text);
}

const detailOf = (message: string): string => (message === "" ? "" : `: ${message.replace(/\.$/, "")}`);
