import { readFileSync } from "node:fs";
import { Argument, Command as Parser, Option as Flag, type CommanderError } from "commander";
import { checkedId, UsageError, type Command, type Option, type Values } from "./command.ts";
import { overviewOf, unknownCommand, usageOf, valueOf } from "./help.ts";

/** A command line as a user meant it. */
export type Invocation = { readonly command: Command; readonly args: string[]; readonly values: Values };

/** Options of every command; they may also precede its words. */
const GLOBAL_OPTIONS: Readonly<Record<string, Option>> = {
  json: { type: "boolean" },
  url: { type: "string" },
  "api-key": { type: "string" },
  team: { type: "string" },
};

/** Arguments that are named in paths. */
const IDS = new Set([
  "RUN",
  "TASK",
  "AUTOMATION",
  "WEBHOOK",
  "DELIVERY",
  "SCHEDULE",
  "CODE_HOST",
  "KEY",
  "SECRET",
  "ENVIRONMENT",
  "SCORER",
  "SUITE",
  "OTHER_RUN",
]);

/** A command line that was rejected, with the message and the help that belongs to it. */
export class RejectedLine extends Error {}

type Run = (invocation: Invocation) => Promise<void>;

/**
 * Returns the parser of all commands. `run` is called with the command that the line names. Parsing throws
 * `RejectedLine` if the line is wrong, and commander's error with exit code 0 after help or the version was printed.
 */
export function createProgram(commands: readonly Command[], print: (text: string) => void, run: Run): Parser {
  const program = new Parser("millwright")
    .enablePositionalOptions()
    .version(version(), "--version")
    .configureOutput(SILENT)
    .exitOverride((error) => {
      const words = wordsOf(program);
      if (error.code === "commander.unknownOption") throw new RejectedLine(sentenceOf(error));
      if (error.exitCode !== 0 || words.length > 0) throw new RejectedLine(unknownCommand(words, commands));
      print(error.code === "commander.version" ? error.message : overviewOf(commands));
      throw error;
    });
  addOptions(program, GLOBAL_OPTIONS, (message) => message);
  for (const [subject, group] of Map.groupBy(commands, ({ words }) => words.split(" ")[0]!)) {
    const parent = group.some(({ words }) => words === subject) ? program : addSubject(program, subject, group, print);
    for (const command of group) addCommand(program, parent, command, print, run);
  }
  return program;
}

/** Output of commander itself is dropped, because what is printed depends on the whole line. */
const SILENT = { writeOut: (): void => {}, writeErr: (): void => {} };

/** Adds the first word of several commands. */
function addSubject(
  program: Parser,
  subject: string,
  group: readonly Command[],
  print: (text: string) => void,
): Parser {
  const parser = program
    .command(subject)
    .helpCommand(false)
    .exitOverride((error) => {
      const words = [subject, ...wordsOf(parser)];
      if (error.code === "commander.unknownOption") throw new RejectedLine(sentenceOf(error));
      if (error.exitCode !== 0 || words.length > 1) throw new RejectedLine(unknownCommand(words, group));
      print(overviewOf(group));
      throw error;
    });
  return parser;
}

function addCommand(program: Parser, parent: Parser, command: Command, print: (text: string) => void, run: Run): void {
  const rejection = (message: string): string => `${message}\n\n${usageOf(command)}`;
  const options = { ...GLOBAL_OPTIONS, ...command.options };
  const parser = parent
    .command(command.words.split(" ").at(-1)!)
    .description(command.summary)
    .exitOverride((error) => {
      if (error.code === "commander.excessArguments")
        throw new RejectedLine(rejection(`${command.words} takes ${command.args.join(" ") || "no arguments"}.`));
      if (error.exitCode !== 0) throw new RejectedLine(rejection(sentenceOf(error)));
      print(usageOf(command));
      throw error;
    });
  for (const arg of command.args) parser.addArgument(argumentOf(arg, command, rejection));
  addOptions(parser, options, rejection);
  const values = (): Values => valuesOf({ ...program.opts(), ...parser.opts() }, options);
  parser.action(() => run({ command, args: parser.args, values: values() }));
}

/** Returns commander's message as a sentence, without the value of an unknown option, which may be a secret. */
function sentenceOf({ message }: CommanderError): string {
  const text = message.replace(/^error: /, "").replace(/^(unknown option '(?:--[\w-]+|-\w)).*'/s, "$1'");
  return `${text[0]!.toUpperCase()}${text.slice(1)}${/[.)]$/.test(text) ? "" : "."}`;
}

/** Returns the words that a parser was given, without options. */
const wordsOf = (parser: Parser): string[] => parser.args.filter((word) => !word.startsWith("-") && word !== "help");

/** Returns the message of a rejected value with what else is printed. */
type Rejection = (message: string) => string;

function argumentOf(text: string, { choices = {} }: Command, rejection: Rejection): Argument {
  const name = text.replace(/[[\].]/g, "");
  const argument = new Argument(text.startsWith("[") ? text : `<${text}>`);
  const allowed = choices[name];
  if (allowed) argument.choices(allowed);
  return argument.argParser<string | string[]>((value, previous) => {
    checkValue(rejection, () => {
      if (IDS.has(name)) checkedId(value, name);
      checkChoice(name, value, allowed);
    });
    return argument.variadic ? [previous ?? [], value].flat() : value;
  });
}

function addOptions(parser: Parser, options: Readonly<Record<string, Option>>, rejection: Rejection): void {
  for (const [name, { type, multiple = false, choices }] of Object.entries(options)) {
    const flag = new Flag(type === "string" ? `--${name} <${valueOf(name)}>` : `--${name}`);
    if (choices) flag.choices(choices);
    if (type === "string")
      flag.argParser<string | string[]>((value, previous) => {
        checkValue(rejection, () => checkChoice(`--${name}`, value, choices));
        return multiple ? [previous ?? [], value].flat() : value;
      });
    parser.addOption(flag);
  }
}

function checkValue(rejection: Rejection, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw new RejectedLine(rejection((error as UsageError).message), { cause: error });
  }
}

/** Throws `UsageError` if one of the values, with commas between, is not allowed. */
function checkChoice(what: string, value: string, choices: readonly string[] | undefined): void {
  const wrong = choices && value.split(",").find((choice) => !choices.includes(choice));
  if (wrong !== undefined)
    throw new UsageError(`${what} must be one of ${choices!.join(", ")} (got ${JSON.stringify(wrong)}).`);
}

/** Returns the values by the options' names on the command line; commander's names are in camel case. */
function valuesOf(given: Record<string, unknown>, options: Readonly<Record<string, Option>>): Values {
  const entries = Object.keys(options).map((name) => [name, given[new Flag(`--${name}`).attributeName()]]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Values;
}

const version = (): string =>
  (JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }).version;
