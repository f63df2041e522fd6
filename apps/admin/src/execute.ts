import { Command as Parser, type CommanderError } from "commander";
import { printable } from "@millwright/terminal";
import { UsageError, type Command, type Values } from "./command.ts";
import { COMMANDS } from "./commands/all.ts";

export const EXIT = { done: 0, failed: 1, wrongUsage: 2 } as const;

export type Terminal = {
  readonly env: NodeJS.ProcessEnv;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
};

/** Runs one command line and returns its exit code. */
export async function execute(argv: readonly string[], { env, print, printError }: Terminal): Promise<number> {
  try {
    const command = findCommand(argv);
    const isHelp = argv.some((word) => word === "--help" || word === "-h");
    if (isHelp || argv.length === 0) {
      print(command ? usageOf(command) : overview());
      return EXIT.done;
    }
    if (!command) throw new UsageError(`Unknown command "${argv.join(" ")}". ${SEE_HELP}`);
    const { args, values } = parse(command, argv.slice(command.words.split(" ").length));
    return (await command.run({ env, print }, args, values)) === false ? EXIT.failed : EXIT.done;
  } catch (error) {
    printError(printable(error instanceof Error ? error.message : String(error)));
    return error instanceof UsageError ? EXIT.wrongUsage : EXIT.failed;
  }
}

const SEE_HELP = "millwright-admin --help lists all commands.";

const findCommand = (words: readonly string[]): Command | undefined =>
  COMMANDS.find((command) => command.words.split(" ").every((word, index) => words[index] === word));

/** Throws a `UsageError` with the usage of the command if its words do not fit. */
function parse(command: Command, words: readonly string[]): { args: readonly string[]; values: Values } {
  const parser = new Parser(command.words)
    .helpOption(false)
    .configureOutput({ writeErr: () => {} })
    .exitOverride((error) => {
      throw new UsageError(`${sentenceOf(error, parser.args, command)}\n\n${usageOf(command)}`);
    });
  for (const arg of command.args) parser.argument(arg.startsWith("[") ? arg : `<${arg}>`);
  for (const [flags, meaning] of Object.entries(command.options ?? {})) parser.option(flags, meaning);
  parser.parse([...words], { from: "user" });
  return { args: parser.args, values: parser.opts<Values>() };
}

/** Returns commander's message as a sentence. */
function sentenceOf({ code, message }: CommanderError, args: readonly string[], command: Command): string {
  if (code === "commander.excessArguments") return `Unexpected argument "${args[command.args.length]}".`;
  const text = message.replace(/^error: /, "");
  return `${text[0]!.toUpperCase()}${text.slice(1)}${/[.)]$/.test(text) ? "" : "."}`;
}

const lineOf = ({ words, args }: Command): string => [words, ...args].join(" ");

const usageOf = (command: Command): string => {
  const options = Object.entries(command.options ?? {});
  const width = Math.max(0, ...options.map(([flags]) => flags.length));
  return [
    `usage: millwright-admin ${lineOf(command)}${options.length > 0 ? " [OPTIONS]" : ""}`,
    command.summary,
    ...options.map(([flags, meaning]) => `  ${flags.padEnd(width)}  ${meaning}`),
    ...command.details.map((line) => `  ${line}`),
    command.needsOneDatabase ? ONE_DATABASE : ALL_DATABASES,
    EXIT_CODES,
  ].join("\n");
};

const SERVER = "on the server of MILLWRIGHT_DATABASE_URL, otherwise of MILLWRIGHT_DATA_DIR";
const ONE_DATABASE = `  Without DATABASE_URL: ${SERVER}.`;
const ALL_DATABASES = `  Databases: those of <SERVICE>_DATABASE_URL (set all of them), otherwise those ${SERVER}.`;
const EXIT_CODES = "  Exit codes: 0 done, 1 the work failed, 2 wrong usage.";

function overview(): string {
  const width = Math.max(...COMMANDS.map((command) => lineOf(command).length));
  const lines = COMMANDS.map((command) => `  ${lineOf(command).padEnd(width)}  ${command.summary}`);
  return [
    "usage: millwright-admin COMMAND",
    "",
    ...lines,
    "",
    "millwright-admin COMMAND --help shows what a command needs.",
  ].join("\n");
}
