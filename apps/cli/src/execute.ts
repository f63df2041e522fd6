import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { ApiClient, ApiError, type Problem } from "@millwright/api-client";
import { paint, printable, printableJson } from "@millwright/terminal";
import {
  checkedId,
  checkedUrl,
  EXIT,
  NotFound,
  UsageError,
  textOption,
  type Cli,
  type Command,
  type Printed,
  type Values,
} from "./command.ts";
import { COMMANDS } from "./commands/all.ts";
import { overviewOf, unknownCommand, usageOf } from "./help.ts";
import { readLogin } from "./login-file.ts";

export type Surroundings = {
  env: NodeJS.ProcessEnv;
  isColour: boolean;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
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
/** Refusals with status 400 that are not about a value of the command line. */
const STATE_REFUSALS = new Set(["run_already_finished", "benchmark_run_finished"]);
const GLOBAL_OPTIONS = {
  json: { type: "boolean" },
  url: { type: "string" },
  "api-key": { type: "string" },
  team: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

/** Executes one command line. Returns its exit code. Never throws for an error that a user can cause. */
export async function execute(argv: string[], terminal: Surroundings): Promise<number> {
  const around = { ...terminal, printError: (text: string) => terminal.printError(printable(text)) };
  const { options, words } = leadingOptions(argv);
  const command = COMMANDS.find((one) => one.words.split(" ").every((word, index) => words[index] === word));
  if (!command) return withoutCommand(argv, around);
  try {
    const { positionals, values } = parse(command, [...options, ...words.slice(command.words.split(" ").length)]);
    if (values["help"]) {
      around.print(usageOf(command));
      return EXIT.done;
    }
    const cli = createCli(values, around);
    const team = textOption(values, "team");
    if (team !== undefined && !command.ignoresTeam) await checkTeam(cli, team);
    return (await command.run(cli, positionals, values)) ?? EXIT.done;
  } catch (error) {
    return explain(error, command, around);
  }
}

/** Global options may also precede the words of a command. */
function leadingOptions(argv: readonly string[]): { options: string[]; words: string[] } {
  let at = 0;
  while (argv[at]?.startsWith("--")) at += ["--url", "--api-key", "--team"].includes(argv[at]!) ? 2 : 1;
  return { options: argv.slice(0, at), words: argv.slice(at) };
}

/** Prints the help of all commands or of one subject, the version, or the error. */
function withoutCommand(argv: readonly string[], around: Surroundings): number {
  if (argv.includes("--version")) {
    around.print(
      (JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }).version,
    );
    return EXIT.done;
  }
  const isAsking = argv.length === 0 || argv[0] === "help" || argv.includes("--help") || argv.includes("-h");
  const named = leadingOptions(argv).words.filter((word) => !word.startsWith("-") && word !== "help");
  const siblings = COMMANDS.filter((one) => one.words.split(" ")[0] === named[0]);
  if (isAsking && (named.length === 0 || (siblings.length > 0 && (named.length === 1 || argv[0] === "help")))) {
    around.print(overviewOf(siblings.length > 0 ? siblings : COMMANDS));
    return EXIT.done;
  }
  around.printError(unknownCommand(named, COMMANDS));
  return EXIT.usage;
}

function parse(command: Command, rest: string[]): { positionals: string[]; values: Values } {
  let parsed: { positionals: string[]; values: Values };
  try {
    parsed = parseArgs({ args: rest, allowPositionals: true, options: { ...GLOBAL_OPTIONS, ...command.options } });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const required = command.args.filter((arg) => !arg.startsWith("[")).length;
  const { positionals, values } = parsed;
  if (
    !values["help"] &&
    (positionals.length < required ||
      (positionals.length > command.args.length && !command.args.at(-1)?.endsWith("...")))
  ) {
    throw new UsageError(`${command.words} takes ${command.args.join(" ") || "no arguments"}`);
  }
  for (const [at, arg] of command.args.entries()) {
    const what = arg.replace(/[[\]]/g, "");
    if (positionals[at] === undefined) continue;
    if (IDS.has(what)) checkedId(positionals[at], what);
    checkChoice(what, positionals[at], command.choices?.[what]);
  }
  for (const [name, { choices }] of Object.entries(command.options ?? {})) {
    for (const value of [values[name] ?? []].flat())
      if (typeof value === "string") checkChoice(`--${name}`, value, choices);
  }
  return parsed;
}

function checkChoice(what: string, value: string, choices: readonly string[] | undefined): void {
  const wrong = choices && value.split(",").find((one) => !choices.includes(one));
  if (wrong !== undefined)
    throw new UsageError(`${what} must be one of ${choices!.join(", ")} (got ${JSON.stringify(wrong)}).`);
}

/** Throws `NotFound`, or the platform's refusal with 404, if the team of --team is unknown or not visible to the caller. */
async function checkTeam(cli: Cli, team: string): Promise<void> {
  const { teams } = await cli.api().get<{ teams: { uid: string }[] }>("/whoami");
  if (!teams.some(({ uid }) => uid === team)) await cli.api().get(`/team/${checkedId(team, "team")}`);
}

function createCli(values: Values, around: Surroundings): Cli {
  const colours = paint(around.isColour);
  const isJson = values["json"] === true;
  const print = (printed: Printed): void => {
    const parts = typeof printed === "string" ? [{ text: printed }] : printed;
    around.print(parts.map(({ text, style }) => (style ? colours[style](printable(text)) : printable(text))).join(""));
  };
  const printJson = (json: string): void => around.print(printableJson(json));
  return {
    env: around.env,
    isJson,
    isPlain: !around.isColour,
    print,
    printJson,
    printError: around.printError,
    show: (value, human) => {
      if (isJson) printJson(JSON.stringify(value, null, 2));
      else print(human());
    },
    api: () => {
      const login = readLogin(around.env);
      const url = textOption(values, "url") ?? around.env["MILLWRIGHT_URL"] ?? login?.url ?? "http://127.0.0.1:8080";
      const apiKey = textOption(values, "api-key") ?? around.env["MILLWRIGHT_API_KEY"] ?? login?.apiKey;
      if (!apiKey) throw new UsageError("No API key: set MILLWRIGHT_API_KEY, or run `millwright login`.");
      const teamUid = textOption(values, "team");
      return new ApiClient({ url: checkedUrl(url), apiKey, ...(teamUid !== undefined && { teamUid }) });
    },
  };
}

/** Whether the platform refused a value of the request. A definition that it refuses is failed work instead. */
const isWrongUsage = ({ status, reason = "", diagnostics }: Problem): boolean =>
  status === 400 && diagnostics === undefined && !STATE_REFUSALS.has(reason);

function explain(error: unknown, command: Command, around: Surroundings): number {
  if (error instanceof UsageError) {
    around.printError(`${error.message}\n\n${usageOf(command)}`);
    return EXIT.usage;
  }
  if (error instanceof ApiError) {
    around.printError(`${error.message}${error.problem.reason ? ` (${error.problem.reason})` : ""}`);
    for (const d of error.problem.diagnostics ?? [])
      around.printError(`  ${d.path}:${d.line}:${d.column} ${d.code} ${d.message}`);
    if (error.status === 401 || error.status === 403) return EXIT.notAuthorised;
    if (error.status === 404) return EXIT.notFound;
    return isWrongUsage(error.problem) ? EXIT.usage : EXIT.failed;
  }
  if (error instanceof NotFound) {
    around.printError(error.message);
    return EXIT.notFound;
  }
  const { message, cause } = error as Error & { cause?: Error };
  around.printError(
    message === "fetch failed"
      ? `The platform does not respond. Check that it is running and that MILLWRIGHT_URL is right. (${cause?.message || message})`
      : message,
  );
  return EXIT.failed;
}
