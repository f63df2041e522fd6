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
    "  --json prints the API response as JSON.",
  ].join("\n");
}

/** The commands, one line each. */
export function overviewOf(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => `${command.words} ${command.args.join(" ")}`.length));
  const lines = commands.map(
    (command) => `  ${`${command.words} ${command.args.join(" ")}`.padEnd(width)}  ${command.summary}`,
  );
  return [FIRST_LINE, "", ...lines, "", "millwright COMMAND --help shows the options of a command."].join("\n");
}

/** Returns the error for words that name no command, with the commands of the same subject. */
export function unknownCommand(words: readonly string[], commands: readonly Command[]): string {
  const subject = words[0] ?? "";
  const siblings = commands.filter((command) => command.words.split(" ")[0] === subject);
  if (siblings.length === 0) return `Unknown command ${subject}. millwright --help lists all commands.`;
  return `${words[1] === undefined ? `${subject} needs a second word.` : `Unknown command ${subject} ${words[1]}.`}\n\n${overviewOf(siblings)}`;
}

/** Returns the placeholder of an option's value: `--secret-name SECRET_NAME`. */
export const valueOf = (name: string): string => name.toUpperCase().replaceAll("-", "_");
