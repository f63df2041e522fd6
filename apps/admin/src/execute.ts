import { parseArgs } from "node:util";
import { printable } from "@millwright/terminal";
import { UsageError, type Command } from "./command.ts";
import { migrate } from "./commands/migrate.ts";
import { ownerKey } from "./commands/owner-key.ts";
import { rebuildMetrics } from "./commands/rebuild-metrics.ts";

const COMMANDS: readonly Command[] = [migrate, ownerKey, rebuildMetrics];

export const EXIT = { done: 0, failed: 1, wrongUsage: 2 } as const;

export type Terminal = {
  readonly env: NodeJS.ProcessEnv;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
};

/** Runs one command line and returns its exit code. */
export async function execute(argv: readonly string[], { env, print, printError }: Terminal): Promise<number> {
  try {
    const { positionals, values } = parse(argv);
    const command = findCommand(positionals);
    if (values.help || positionals.length === 0) {
      print(command ? usageOf(command) : overview());
      return EXIT.done;
    }
    if (!command)
      throw new UsageError(`Unknown command "${positionals.join(" ")}". millwright-admin --help lists all commands.`);
    const args = positionals.slice(command.words.split(" ").length);
    checkCount(command, args);
    await command.run({ env, print }, args);
    return EXIT.done;
  } catch (error) {
    printError(printable(error instanceof Error ? error.message : String(error)));
    return error instanceof UsageError ? EXIT.wrongUsage : EXIT.failed;
  }
}

function parse(argv: readonly string[]) {
  const options = { help: { type: "boolean", short: "h" } } as const;
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`${(error as Error).message} millwright-admin --help shows what there is.`);
  }
}

const findCommand = (words: readonly string[]): Command | undefined =>
  COMMANDS.find((command) => command.words.split(" ").every((word, index) => words[index] === word));

function checkCount(command: Command, args: readonly string[]): void {
  const isOpen = command.args.at(-1)?.includes("...") ?? false;
  if (args.length > command.args.length && !isOpen)
    throw new UsageError(`Unexpected argument "${args[command.args.length]}".\n${usageOf(command)}`);
}

const lineOf = ({ words, args }: Command): string => [words, ...args].join(" ");

const usageOf = (command: Command): string =>
  [
    `usage: millwright-admin ${lineOf(command)}`,
    command.summary,
    ...command.details.map((line) => `  ${line}`),
    ...WHERE,
  ].join("\n");

const WHERE = [
  "  Without DATABASE_URL: databases of the server of MILLWRIGHT_DATABASE_URL, otherwise of MILLWRIGHT_DATA_DIR.",
  "  Exit codes: 0 done, 1 the work failed, 2 wrong usage.",
];

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
