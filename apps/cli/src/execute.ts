import { ApiClient, ApiError, type Problem } from "@millwright/api-client";
import { CommanderError } from "commander";
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
import { usageOf } from "./help.ts";
import { readLogin } from "./login-file.ts";
import { createProgram, RejectedLine, type Invocation } from "./program.ts";

export type Terminal = {
  env: NodeJS.ProcessEnv;
  isColour: boolean;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
};

/** Refusals with status 400 that are not about a value of the command line. */
const STATE_REFUSALS = new Set(["run_already_finished", "benchmark_run_finished"]);
/** Executes one command line. Returns its exit code. Never throws for an error that a user can cause. */
export async function execute(argv: string[], rawTerminal: Terminal): Promise<number> {
  const terminal = { ...rawTerminal, printError: (text: string) => rawTerminal.printError(printable(text)) };
  if (argv.length === 0) return execute(["--help"], terminal);
  let exitCode: number = EXIT.done;
  const program = createProgram(COMMANDS, terminal.print, async (invocation) => {
    exitCode = await run(invocation, terminal);
  });
  if (argv[0] === "complete") (await import("@bomb.sh/tab/commander")).default(program);
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return EXIT.done; // help or the version was printed
    if (!(error instanceof RejectedLine)) throw error;
    terminal.printError(error.message);
    return EXIT.usage;
  }
}

async function run({ command, args, values }: Invocation, terminal: Terminal): Promise<number> {
  try {
    const cli = createCli(values, terminal);
    const team = textOption(values, "team");
    if (team !== undefined && !command.ignoresTeam) await checkTeam(cli, team);
    return (await command.run(cli, args, values)) ?? EXIT.done;
  } catch (error) {
    return explain(error, command, terminal);
  }
}

/**
 * Throws `NotFound`, or the platform's refusal with 404, if the team of --team is unknown or not visible to the caller.
 */
async function checkTeam(cli: Cli, team: string): Promise<void> {
  const { teams } = await cli.api().get<{ teams: { uid: string }[] }>("/whoami");
  if (!teams.some(({ uid }) => uid === team)) await cli.api().get(`/team/${checkedId(team, "team")}`);
}

function createCli(values: Values, terminal: Terminal): Cli {
  const colours = paint(terminal.isColour);
  const isJson = values["json"] === true;
  const print = (printed: Printed): void => {
    const parts = typeof printed === "string" ? [{ text: printed }] : printed;
    terminal.print(
      parts.map(({ text, style }) => (style ? colours[style](printable(text)) : printable(text))).join(""),
    );
  };
  const printJson = (json: string): void => terminal.print(printableJson(json));
  return {
    env: terminal.env,
    isJson,
    isPlain: !terminal.isColour,
    print,
    printJson,
    printError: terminal.printError,
    show: (value, human) => {
      if (isJson) printJson(JSON.stringify(value, null, 2));
      else print(human());
    },
    api: () => {
      const login = readLogin(terminal.env);
      const url = textOption(values, "url") ?? terminal.env["MILLWRIGHT_URL"] ?? login?.url ?? "http://127.0.0.1:8080";
      const apiKey = textOption(values, "api-key") ?? terminal.env["MILLWRIGHT_API_KEY"] ?? login?.apiKey;
      if (!apiKey) throw new UsageError("No API key: set MILLWRIGHT_API_KEY, or run `millwright login`.");
      const teamUid = textOption(values, "team");
      return new ApiClient({ url: checkedUrl(url), apiKey, teamUid });
    },
  };
}

/** Whether the platform refused a value of the request. A definition that it refuses is failed work instead. */
const isWrongUsage = ({ status, reason = "", diagnostics }: Problem): boolean =>
  status === 400 && diagnostics === undefined && !STATE_REFUSALS.has(reason);

function explain(error: unknown, command: Command, terminal: Terminal): number {
  if (error instanceof UsageError) {
    terminal.printError(`${error.message}\n\n${usageOf(command)}`);
    return EXIT.usage;
  }
  if (error instanceof ApiError) {
    terminal.printError(`${error.message}${error.problem.reason ? ` (${error.problem.reason})` : ""}`);
    for (const d of error.problem.diagnostics ?? [])
      terminal.printError(`  ${d.path}:${d.line}:${d.column} ${d.code} ${d.message}`);
    if (error.status === 401 || error.status === 403) return EXIT.notAuthorised;
    if (error.status === 404) return EXIT.notFound;
    return isWrongUsage(error.problem) ? EXIT.usage : EXIT.failed;
  }
  if (error instanceof NotFound) {
    terminal.printError(error.message);
    return EXIT.notFound;
  }
  const { message, cause } = error as Error & { cause?: Error };
  terminal.printError(
    message === "fetch failed"
      ? `The platform does not respond. Check that it is running and that MILLWRIGHT_URL is right. (${cause?.message || message})`
      : message,
  );
  return EXIT.failed;
}
