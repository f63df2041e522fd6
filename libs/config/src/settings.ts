import * as v from "valibot";
import { parseDuration } from "./duration.ts";
import { parseSize } from "./size.ts";

/** One environment variable: what it is called, what it means, what it allows, and how its text becomes a value. */
export type Setting<T> = {
  readonly name: string;
  /** Sentences for operators, in Markdown. */
  readonly description: string;
  /** The allowed values as a phrase that follows "must be", such as `a whole number from 1 to 256`. */
  readonly allowed: string;
  readonly isRequired: boolean;
  /** Whether the value is or may contain a secret. Such values never appear in messages. */
  readonly isSecret: boolean;
  /** The text that is read if the variable is absent. */
  readonly defaultText: string | undefined;
  /** The default as documentation shows it, for defaults that depend on the machine. */
  readonly shownDefault: string | undefined;
  /** Whether an empty text is a value. Otherwise it means that the variable is absent. */
  readonly allowsEmpty: boolean;
  /** Parses and checks the text. */
  readonly schema: v.GenericSchema<string, T>;
};

/** Options of any setting. */
type Common = {
  readonly secret?: boolean;
  readonly shownDefault?: string;
  readonly allowsEmpty?: boolean;
};

/** A minimum and a maximum. Those of durations and sizes are written like the variable's text. */
type Range<L> = { readonly min?: L; readonly max?: L };

/** What a kind of setting parses, and the phrase for what it allows. */
type Kind<T> = { readonly allowed: string; readonly schema: v.GenericSchema<string, T> };

/** A kind whose options are `O`. */
type KindOf<T, O> = (options: O) => Kind<T>;

/** Returns a schema that parses a text; undefined means that the text is invalid. */
const parsed = <T>(parse: (text: string) => T | undefined): v.GenericSchema<string, T> =>
  v.pipe(
    v.string(),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      const value = parse(dataset.value);
      if (value !== undefined) return value;
      addIssue();
      return NEVER;
    }),
  );

/** Returns the schema with its bounds, which are numbers in the unit of the value. */
const between = (
  schema: v.GenericSchema<string, number>,
  min?: number,
  max?: number,
): v.GenericSchema<string, number> =>
  v.pipe(schema, v.minValue(min ?? Number.NEGATIVE_INFINITY), v.maxValue(max ?? Number.POSITIVE_INFINITY));

const rangeText = (min?: string | number, max?: string | number): string =>
  min !== undefined && max !== undefined
    ? ` from ${min} to ${max}`
    : min !== undefined
      ? ` of at least ${min}`
      : max !== undefined
        ? ` of at most ${max}`
        : "";

/** Returns a kind of number whose bounds are written like the variable's text, such as "128M". */
const measured =
  (allowed: string, parse: (text: string) => number | undefined): KindOf<number, Range<string>> =>
  ({ min, max }) => ({
    allowed: `${allowed}${rangeText(min, max)}`,
    schema: between(
      parsed(parse),
      min === undefined ? undefined : parse(min),
      max === undefined ? undefined : parse(max),
    ),
  });

const plainKind =
  <T>(allowed: string, parse: (text: string) => T | undefined): KindOf<T, object> =>
  () => ({ allowed, schema: parsed(parse) });

const urlOf = (text: string): string | undefined => (URL.canParse(text) ? text.replace(/\/+$/, "") : undefined);

const wholeNumberOf = (text: string): number | undefined =>
  /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;

const fractionOf = (text: string): number | undefined =>
  /^\d*\.?\d+$/.test(text) && Number(text) <= 1 ? Number(text) : undefined;

const booleanOf = (text: string): boolean | undefined =>
  /^(true|1|yes|on)$/i.test(text) ? true : /^(false|0|no|off)$/i.test(text) ? false : undefined;

/** Returns the parts of a comma-separated list, without empty ones. */
export const partsOf = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

function urlsOf(text: string): string[] | undefined {
  const urls = partsOf(text).map(urlOf);
  return urls.length > 0 && urls.every((url) => url !== undefined) ? urls : undefined;
}

function pairsOf(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = partsOf(text).map((part) => /^([^=]+)=(.+)$/.exec(part));
  return pairs.every((pair) => pair !== null)
    ? Object.fromEntries(pairs.map(([, name, value]) => [name!, value!]))
    : undefined;
}

/** Returns a kind that a function parses. The messages of its errors are shown and must not contain secrets. */
const customKind = <T>({ allowed, parse }: CustomOptions<T>): Kind<T> => ({
  allowed,
  schema: v.pipe(
    v.string(),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      try {
        return parse(dataset.value);
      } catch (error) {
        addIssue({ message: (error as Error).message });
        return NEVER;
      }
    }),
  ),
});

type CustomOptions<T> = { readonly allowed: string; readonly parse: (text: string) => T };

const kinds = {
  string: plainKind("text", (text) => text),
  secret: plainKind("text", (text) => text),
  url: plainKind("an absolute URL", urlOf),
  urls: plainKind("comma-separated absolute URLs", urlsOf),
  list: plainKind("a comma-separated list", partsOf),
  pairs: plainKind("a comma-separated list of name=value", pairsOf),
  bool: plainKind("true or false", booleanOf),
  fraction: plainKind("a number from 0 to 1", fractionOf),
  int: ({ min = 0, max }: Range<number>): Kind<number> => ({
    allowed: `a whole number from ${min}${max === undefined ? "" : ` to ${max}`}`,
    schema: between(parsed(wholeNumberOf), min, max),
  }),
  duration: measured('a duration such as "15s"', parseDuration),
  size: measured('a size such as "512M" or "4G"', parseSize),
};

const oneOfKind = <const T extends string>(values: readonly T[]): Kind<T> => ({
  allowed: new Intl.ListFormat("en-GB", { type: "disjunction" }).format(values.map((value) => `"${value}"`)),
  schema: v.pipe(v.string(), v.picklist(values)),
});

type Default = string | number | boolean | readonly string[];

type Arguments = { readonly name: string; readonly description: string; readonly isRequired: boolean };

const settingOf = <T>(
  { name, description, isRequired }: Arguments,
  { allowed, schema }: Kind<T>,
  { secret = false, shownDefault, allowsEmpty = false, ...options }: Common & { readonly default?: Default },
): Setting<T> => ({
  name,
  description,
  allowed,
  isRequired,
  isSecret: secret,
  defaultText: options.default === undefined ? undefined : String(options.default),
  shownDefault,
  allowsEmpty,
  schema,
});

const mandatory =
  <T, O extends object>(kind: KindOf<T, O>, fixed: Common = {}) =>
  (name: string, description: string, options?: Common & O): Setting<T> =>
    settingOf({ name, description, isRequired: true }, kind((options ?? {}) as O), { ...fixed, ...options });

/** Defines a setting that may be absent; with a default, its value is never undefined. */
interface OptionalSetting<T, F, O> {
  (name: string, description: string, options: Common & O & { readonly default: F }): Setting<T>;
  (name: string, description: string, options?: Common & O): Setting<T | undefined>;
}

function voluntary<T, F, O extends object>(kind: KindOf<T, O>, fixed: Common = {}): OptionalSetting<T, F, O> {
  const make = (name: string, description: string, options?: Common & O): Setting<T> =>
    settingOf({ name, description, isRequired: false }, kind((options ?? {}) as O), { ...fixed, ...options });
  return make;
}

/** Settings that the service needs to start. An empty text counts as absent. URLs lose trailing slashes. */
export const required = {
  string: mandatory(kinds.string),
  secret: mandatory(kinds.secret, { secret: true }),
  url: mandatory(kinds.url),
  /** One or more URLs, separated by commas. */
  urls: mandatory(kinds.urls),
  int: mandatory(kinds.int),
  custom: <T>(name: string, description: string, options: Common & CustomOptions<T>): Setting<T> =>
    settingOf({ name, description, isRequired: true }, customKind(options), options),
};

/**
 * Settings that may be absent, with or without a default. Durations are parsed as milliseconds, sizes as bytes. A
 * default is written like the variable's text: `optional.duration("TTL", "…", { default: "15s" })`.
 */
export const optional = {
  string: voluntary<string, string, object>(kinds.string),
  secret: voluntary<string, string, object>(kinds.secret, { secret: true }),
  url: voluntary<string, string, object>(kinds.url),
  int: voluntary<number, number, Range<number>>(kinds.int),
  fraction: voluntary<number, number, object>(kinds.fraction),
  bool: voluntary<boolean, boolean, object>(kinds.bool),
  duration: voluntary<number, string, Range<string>>(kinds.duration),
  size: voluntary<number, string, Range<string>>(kinds.size),
  list: voluntary<string[], readonly string[], object>(kinds.list),
  /** `name=value, …` as a record. */
  pairs: voluntary<Readonly<Record<string, string>>, "", object>(kinds.pairs),
  /** Exactly one of a few values. */
  oneOf: oneOfSetting,
  /** A value that a function parses. With a default it is never undefined. */
  custom: customSetting,
};

function customSetting<T>(
  name: string,
  description: string,
  options: Common & CustomOptions<T> & { readonly default: string },
): Setting<T>;
function customSetting<T>(
  name: string,
  description: string,
  options: Common & CustomOptions<T>,
): Setting<T | undefined>;
function customSetting<T>(
  name: string,
  description: string,
  options: Common & CustomOptions<T> & { readonly default?: string },
): Setting<T | undefined> {
  return settingOf<T | undefined>({ name, description, isRequired: false }, customKind(options), options);
}

function oneOfSetting<const T extends string>(
  name: string,
  description: string,
  options: Common & { readonly values: readonly T[]; readonly default: T },
): Setting<T>;
function oneOfSetting<const T extends string>(
  name: string,
  description: string,
  options: Common & { readonly values: readonly T[] },
): Setting<T | undefined>;
function oneOfSetting<T extends string>(
  name: string,
  description: string,
  options: Common & { readonly values: readonly T[]; readonly default?: T },
): Setting<T | undefined> {
  return settingOf<T | undefined>({ name, description, isRequired: false }, oneOfKind(options.values), options);
}
