import { checkJson, type CheckResult } from "./check-json.ts";
import type { Check, Rule } from "./rule.ts";

export type WorkspaceCheck =
  | Extract<Check, { kind: "command" | "file" }>
  | (Extract<Check, { kind: "json_path" }> & { target: "file" });

/**
 * Result of the command of a check. `exitCode` is null if the command was terminated by its time limit or by a signal.
 */
export type CommandResult = { readonly exitCode: number | null; readonly output: string; readonly truncated: boolean };

const TIMEOUT_SECONDS = 120;
/**
 * Maximum size of a file that is read, in bytes; slightly less than the limit of a command's output in the
 * conversation.
 */
const FILE_BYTES_MAX = 60_000;
const ABSENT = 66;
const TOO_LARGE = 67;

export const isWorkspaceCheck = (check: Check): check is WorkspaceCheck =>
  check.kind === "command" || check.kind === "file" || (check.kind === "json_path" && check.target === "file");

/**
 * Returns the script of a run that executes a rule's checks on a workspace. Each check is one command, which may fail.
 */
export function workspaceScript(rule: Rule): string {
  const steps = rule.checks.flatMap((check, index) => {
    if (!isWorkspaceCheck(check)) return [];
    const timeoutSeconds = (check.kind === "command" ? check.timeout_seconds : undefined) ?? TIMEOUT_SECONDS;
    const fields = [
      `command: ${JSON.stringify(commandOf(check, index))}`,
      `timeout_seconds: ${timeoutSeconds}`,
      "allow_failure: true",
    ];
    return [`- shell: {${fields.join(", ")}}`];
  });
  return ["```scripted", ...steps, '- say: "The checks were executed."', "```"].join("\n");
}

/**
 * Returns the results of the commands of `workspaceScript`, from the conversation document of their run. If a command
 * was repeated after its worker was lost, its last result counts. Checks that were not executed are left out.
 */
export function readWorkspaceResults(rule: Rule, conversationJson: string): Map<number, CommandResult> {
  const actions = new Map<string, number>();
  const results = new Map<number, CommandResult>();
  for (const block of blocksOf(JSON.parse(conversationJson))) {
    if (block["type"] === "action" && block["name"] === "run_command") {
      const { command } = (block["input"] ?? {}) as { command?: unknown };
      const index = rule.checks.findIndex(
        (_check, position) => typeof command === "string" && command.startsWith(markOf(position)),
      );
      if (index >= 0) actions.set(String(block["id"]), index);
    }
    if (block["type"] === "action_result") {
      const index = actions.get(String(block["action_id"]));
      if (index !== undefined) results.set(index, resultOf(block["output"]));
    }
  }
  return results;
}

/** Evaluates a check by the result of its command. */
export function evaluateWorkspaceCheck(check: WorkspaceCheck, result: CommandResult | undefined): CheckResult {
  if (!result) return { code: "check_not_executed", message: "its command was not executed." };
  if (check.kind === "command") {
    const { exit_code: expected = 0, command } = check;
    const ended = result.exitCode === null ? "was ended before it finished" : `exited with ${result.exitCode}`;
    return {
      isMet: result.exitCode === expected,
      text: `command ${JSON.stringify(command)} ${ended}, expected ${expected}`,
    };
  }
  const path = check.kind === "file" ? check.path : (check.file ?? "");
  const isAbsent = result.exitCode === ABSENT;
  if (!isAbsent && (result.exitCode === TOO_LARGE || result.truncated)) {
    return { code: "evidence_too_large", message: `the file ${path} must have at most ${FILE_BYTES_MAX} bytes.` };
  }
  if (!isAbsent && result.exitCode !== 0)
    return { code: "file_unreadable", message: `the file ${path} could not be read.` };
  if (check.kind === "json_path")
    return isAbsent
      ? { isMet: check.exists === false, text: `file ${path} is absent` }
      : checkJson(check, result.output, `file ${path}`);
  const { exists = true, contains } = check;
  if (isAbsent || !exists || contains === undefined)
    return { isMet: isAbsent !== exists, text: `file ${path} is ${isAbsent ? "absent" : "present"}` };
  const isContained = result.output.includes(contains);
  return {
    isMet: isContained,
    text: `file ${path} ${isContained ? "contains" : "does not contain"} the expected text`,
  };
}

/** Returns the prefix of a check's command, which identifies its result. */
const markOf = (index: number): string => `: check ${index + 1}\n`;

/**
 * Returns the command of a check. It runs in a subshell, so that a change of directory or an exit does not affect later
 * commands.
 */
function commandOf(check: WorkspaceCheck, index: number): string {
  if (check.kind === "command") return `${markOf(index)}(\n${check.command}\n)`;
  const file = quoted(check.kind === "file" ? check.path : (check.file ?? ""));
  return `${markOf(index)}(\n[ -e ${file} ] || exit ${ABSENT}\n[ "$(wc -c < ${file})" -le ${FILE_BYTES_MAX} ] || exit ${TOO_LARGE}\ncat < ${file}\n)`;
}

/** Quotes a path for the shell. `./` prevents a name that starts with a dash from being parsed as an option. */
const quoted = (path: string): string => `'${(path.startsWith("/") ? path : `./${path}`).replaceAll("'", "'\\''")}'`;

function resultOf(output: unknown): CommandResult {
  const {
    exit_code: exitCode,
    output: text,
    truncated,
  } = (output ?? {}) as { exit_code?: unknown; output?: unknown; truncated?: unknown };
  return {
    exitCode: typeof exitCode === "number" ? exitCode : null,
    output: typeof text === "string" ? text : "",
    truncated: truncated === true,
  };
}

type Json = { readonly [key: string]: unknown };

/** Yields every block of a conversation document, in order, including those of nested steps. */
function* blocksOf(document: unknown): Iterable<Json> {
  for (const step of listOf(Array.isArray(document) ? { steps: document } : document, "steps")) {
    for (const message of listOf(step, "messages")) yield* listOf(message, "content");
    yield* blocksOf(step);
  }
}

const listOf = (value: unknown, key: string): Json[] => {
  const found = value !== null && typeof value === "object" ? (value as Json)[key] : undefined;
  return Array.isArray(found) ? (found as Json[]) : [];
};
