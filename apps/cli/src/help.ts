import type { Command } from "./command.ts";

const FIRST_LINE = "usage: millwright COMMAND [--json] [--url URL] [--api-key KEY] [--team UID]";

/** One command: its arguments, each of its options, what it does. */
export function usageOf(command: Command): string {
  const options = Object.entries(command.options ?? {}).map(([name, { type, multiple }]) => `[--${name}${type === "string" ? ` ${valueOf(name)}` : ""}]${multiple ? "..." : ""}`);
  return `usage: millwright ${[command.words, ...command.args, ...options].join(" ")}\n${command.summary}`;
}

/** The commands, one line each. */
export function overviewOf(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((one) => `${one.words} ${one.args.join(" ")}`.length));
  const lines = commands.map((one) => `  ${`${one.words} ${one.args.join(" ")}`.padEnd(width)}  ${one.summary}`);
  return [FIRST_LINE, "", ...lines, "", "millwright COMMAND --help shows the options of a command."].join("\n");
}

/** What is wrong with words that name no command, and which ones there are beside them. */
export function unknownCommand(words: readonly string[], commands: readonly Command[]): string {
  const subject = words[0] ?? "";
  const neighbours = commands.filter((one) => one.words.split(" ")[0] === subject);
  if (neighbours.length === 0) return `There is no command ${subject}: millwright --help lists all of them.`;
  return `${words[1] === undefined ? `${subject} needs a second word.` : `There is no command ${subject} ${words[1]}.`}\n\n${overviewOf(neighbours)}`;
}

/** How the value of an option is called: `--secret-name SECRET_NAME`. */
const valueOf = (name: string): string => name.toUpperCase().replaceAll("-", "_");
