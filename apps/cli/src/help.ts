import type { Command } from "./command.ts";

const GLOBAL_OPTIONS = "[--json] [--url URL] [--api-key KEY] [--team UID]";
const FIRST_LINE = `usage: millwright COMMAND ${GLOBAL_OPTIONS}`;

/** Returns the help of one command: its arguments, each of its options, what it does, and the allowed values. */
export function usageOf(command: Command): string {
  const options = Object.entries(command.options ?? {});
  const shown = options.map(
    ([name, { type, multiple }]) =>
      `[--${name}${type === "string" ? ` ${valueOf(name)}` : ""}]${multiple ? "..." : ""}`,
  );
  const choices = [
    ...Object.entries(command.choices ?? {}),
    ...options.flatMap(([name, { choices: allowed }]) => (allowed ? [[valueOf(name), allowed] as const] : [])),
  ];
  return [
    `usage: millwright ${[command.words, ...command.args, ...shown, GLOBAL_OPTIONS].join(" ")}`,
    command.summary,
    ...choices.map(([name, allowed]) => `  ${name}: ${allowed.join(", ")}`),
    "  --json prints the answer of the API instead of text.",
  ].join("\n");
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
