import { parseArgs } from "node:util";
import { ApiClient, ApiError } from "@millwright/api-client";
import { paint } from "@millwright/terminal";
import { EXIT, UsageError, textOption, type Cli, type Command, type Values } from "./command.ts";
import { COMMANDS } from "./commands/all.ts";
import { readLogin } from "./login-file.ts";

export type Surroundings = {
  env: NodeJS.ProcessEnv;
  isColour: boolean;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
};

const GLOBAL_OPTIONS = { json: { type: "boolean" }, url: { type: "string" }, "api-key": { type: "string" }, team: { type: "string" }, help: { type: "boolean" } } as const;

/** Runs one command line and answers its exit code. Never throws for what a user can cause. */
export async function execute(argv: string[], around: Surroundings): Promise<number> {
  const command = COMMANDS.find((one) => one.words.split(" ").every((word, index) => argv[index] === word));
  if (!command) {
    around.print(overview());
    return argv.length === 0 || argv.includes("--help") || argv[0] === "help" ? EXIT.done : EXIT.usage;
  }
  try {
    const { positionals, values } = parse(command, argv.slice(command.words.split(" ").length));
    if (values["help"]) {
      around.print(usage(command));
      return EXIT.done;
    }
    return (await command.run(createCli(values, around), positionals, values)) ?? EXIT.done;
  } catch (error) {
    return explain(error, command, around);
  }
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
  if (!values["help"] && (positionals.length < required || (positionals.length > command.args.length && !command.args.at(-1)?.endsWith("...")))) {
    throw new UsageError(`${command.words} takes ${command.args.join(" ") || "no arguments"}`);
  }
  return parsed;
}

function createCli(values: Values, around: Surroundings): Cli {
  return {
    env: around.env,
    paint: paint(around.isColour),
    print: around.print,
    show: (value, human) => {
      around.print(values["json"] ? JSON.stringify(value, null, 2) : human());
    },
    api: () => {
      const login = readLogin(around.env);
      const url = textOption(values, "url") ?? around.env["MILLWRIGHT_URL"] ?? login?.url ?? "http://127.0.0.1:8080";
      const apiKey = textOption(values, "api-key") ?? around.env["MILLWRIGHT_API_KEY"] ?? login?.apiKey;
      if (!apiKey) throw new UsageError("No API key: set MILLWRIGHT_API_KEY, or run `millwright login`.");
      const teamUid = textOption(values, "team");
      return new ApiClient({ url, apiKey, ...(teamUid !== undefined && { teamUid }) });
    },
  };
}

function explain(error: unknown, command: Command, around: Surroundings): number {
  if (error instanceof UsageError) {
    around.printError(`${error.message}\n\n${usage(command)}`);
    return EXIT.usage;
  }
  if (error instanceof ApiError) {
    around.printError(`${error.message}${error.problem.reason ? ` (${error.problem.reason})` : ""}`);
    for (const d of error.problem.diagnostics ?? []) around.printError(`  ${d.path}:${d.line}:${d.column} ${d.code} ${d.message}`);
    if (error.status === 401 || error.status === 403) return EXIT.notAuthorised;
    return error.status === 404 ? EXIT.notFound : EXIT.failed;
  }
  const cause = (error as { cause?: { code?: string } }).cause;
  around.printError(cause?.code === "ECONNREFUSED" ? "The platform does not answer: is it running, and is MILLWRIGHT_URL right?" : error instanceof Error ? error.message : String(error));
  return EXIT.failed;
}

function usage(command: Command): string {
  const options = Object.keys(command.options ?? {}).map((name) => `[--${name}]`);
  return `usage: millwright ${[command.words, ...command.args, ...options].join(" ")}\n${command.summary}`;
}

function overview(): string {
  const width = Math.max(...COMMANDS.map((one) => `${one.words} ${one.args.join(" ")}`.length));
  const lines = COMMANDS.map((one) => `  ${`${one.words} ${one.args.join(" ")}`.padEnd(width)}  ${one.summary}`);
  return ["usage: millwright COMMAND [--json] [--url URL] [--api-key KEY] [--team UID]", "", ...lines].join("\n");
}
