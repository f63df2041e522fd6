import { invalidArgument, type DomainError } from "@millwright/errors";
import { parseJsonPath } from "./json-path.ts";
import { compileRegex, RegexError } from "./regex.ts";
import type { Check, Rule } from "./rule.ts";
import type { JsonObject } from "./scorer.ts";

export const RULE_LIMITS = { checks: 20, text: 4_000, path: 1_000, timeoutSeconds: 600, equalsBytes: 4_096 } as const;
const STATES = ["SUCCEEDED", "FAILED", "BLOCKED", "ERROR", "CANCELLED"];

type Read = (check: Members) => Check;

/**
 * Known members of a check, by kind. Unknown members are rejected, because a misspelt member would weaken the check
 * silently.
 */
const KINDS: Readonly<Record<Check["kind"], { members: readonly string[]; read: Read }>> = {
  regex: { members: ["target", "pattern", "flags", "negate"], read: readRegex },
  json_path: { members: ["target", "file", "path", "equals", "exists"], read: readPath },
  file: { members: ["path", "exists", "contains"], read: readFile },
  command: { members: ["command", "exit_code", "timeout_seconds"], read: readCommand },
  metric: { members: ["metric", "max", "min"], read: readMetric },
  state: { members: ["in"], read: readState },
};

/**
 * Parses a rule: 1 to 20 checks with known members only, and two of the labels.
 *
 * Throws `reason` (invalid_argument, metadata `field`).
 */
export function checkRule(given: JsonObject, labels: readonly string[], reason = "scorer_invalid"): Rule {
  const fail = (message: string): DomainError => invalidArgument(reason, message, { field: "rule" });
  const unknown = Object.keys(given).filter((key) => !["checks", "pass", "fail"].includes(key));
  if (unknown.length > 0)
    throw fail(`rule has the unknown member ${JSON.stringify(unknown[0])}; its members are checks, pass and fail.`);
  const { checks, pass, fail: failing } = given;
  if (!Array.isArray(checks) || checks.length === 0 || checks.length > RULE_LIMITS.checks) {
    throw fail(
      `rule.checks must be a list of 1 to ${RULE_LIMITS.checks} checks${Array.isArray(checks) ? ` (got ${checks.length})` : ""}.`,
    );
  }
  for (const [name, label] of [
    ["pass", pass],
    ["fail", failing],
  ] as const) {
    if (typeof label === "string" && labels.includes(label)) continue;
    throw fail(`rule.${name} must be one of the labels: ${labels.map((each) => JSON.stringify(each)).join(", ")}.`);
  }
  if (pass === failing) throw fail("rule.pass and rule.fail must be different labels.");
  return {
    checks: checks.map((check, index) => readCheck(check, `rule.checks[${index}]`, fail)),
    pass: pass as string,
    fail: failing as string,
  };
}

function readCheck(given: unknown, at: string, fail: (message: string) => DomainError): Check {
  if (given === null || typeof given !== "object" || Array.isArray(given)) throw fail(`${at} must be an object.`);
  const { kind, ...members } = given as JsonObject;
  const known = typeof kind === "string" && Object.hasOwn(KINDS, kind) ? KINDS[kind as Check["kind"]] : undefined;
  if (!known) throw fail(`${at}.kind must be one of ${Object.keys(KINDS).join(", ")}.`);
  const unknown = Object.keys(members).find((key) => !known.members.includes(key));
  if (unknown !== undefined)
    throw fail(
      `${at} has the unknown member ${JSON.stringify(unknown)}; a ${kind as string} check has ${known.members.join(", ")}.`,
    );
  return known.read(new Members(members, at, fail));
}

/** The members of one check, read by type. */
class Members {
  readonly #given: JsonObject;
  readonly fail: (message: string) => DomainError;

  constructor(given: JsonObject, at: string, fail: (message: string) => DomainError) {
    this.#given = given;
    this.fail = (message) => fail(`${at}${message}`);
  }

  value = (name: string): unknown => this.#given[name];

  text(name: string, max: number = RULE_LIMITS.text): string | undefined {
    const value = this.#given[name];
    if (value === undefined) return undefined;
    if (typeof value !== "string" || value === "" || value.length > max)
      throw this.fail(`.${name} must be a text of 1 to ${max} characters.`);
    return value;
  }

  requiredText(name: string, max?: number): string {
    const value = this.text(name, max);
    if (value === undefined) throw this.fail(`.${name} is required.`);
    return value;
  }

  flag(name: string): boolean | undefined {
    const value = this.#given[name];
    if (value !== undefined && typeof value !== "boolean") throw this.fail(`.${name} must be true or false.`);
    return value;
  }

  number(name: string, min: number, max: number, isInteger = false): number | undefined {
    const value = this.#given[name];
    if (value === undefined) return undefined;
    if (typeof value !== "number" || !(value >= min && value <= max) || (isInteger && !Number.isInteger(value))) {
      throw this.fail(`.${name} must be ${isInteger ? "an integer" : "a number"} from ${min} to ${max}.`);
    }
    return value;
  }

  oneOf<T extends string>(name: string, choices: readonly T[]): T {
    const value = choices.find((choice) => choice === this.#given[name]);
    if (value === undefined) throw this.fail(`.${name} must be one of ${choices.join(", ")}.`);
    return value;
  }

  /** Returns the path of a file inside the workspace. */
  workspacePath(name: string): string {
    const path = this.requiredText(name, RULE_LIMITS.path);
    if (path.startsWith("/") || path.split("/").some((part) => part === ".." || part === "")) {
      throw this.fail(`.${name} must be a path inside the workspace, such as src/main.ts, without "..".`);
    }
    return path;
  }
}

function readRegex(check: Members): Check {
  const target = check.oneOf("target", ["final_message", "conversation", "diff"]);
  const [pattern, flags, negate] = [check.requiredText("pattern"), check.text("flags"), check.flag("negate")];
  try {
    compileRegex(pattern, flags);
  } catch (error) {
    if (error instanceof RegexError) throw check.fail(`.pattern: ${error.message}`);
    throw error;
  }
  return {
    kind: "regex",
    target,
    pattern,
    flags,
    negate,
  };
}

function readPath(check: Members): Check {
  const target = check.oneOf("target", ["final_message", "file"]);
  const path = check.requiredText("path", RULE_LIMITS.path);
  if (!parseJsonPath(path))
    throw check.fail(
      `.path must be of members and indices, such as $.checks[0]["exit code"] (got ${JSON.stringify(path)}).`,
    );
  if ((target === "file") !== (check.value("file") !== undefined))
    throw check.fail(".file is required with the target file, and only then.");
  const [equals, exists] = [check.value("equals"), check.flag("exists")];
  if (equals !== undefined && exists === false) throw check.fail(".equals and exists: false exclude each other.");
  if (equals !== undefined && Buffer.byteLength(JSON.stringify(equals)) > RULE_LIMITS.equalsBytes) {
    throw check.fail(`.equals must have at most ${RULE_LIMITS.equalsBytes} bytes as JSON.`);
  }
  const file = target === "file" ? { file: check.workspacePath("file") } : {};
  return {
    kind: "json_path",
    target,
    ...file,
    path,
    equals,
    exists,
  };
}

function readFile(check: Members): Check {
  const [path, exists, contains] = [check.workspacePath("path"), check.flag("exists"), check.text("contains")];
  if (exists === false && contains !== undefined) throw check.fail(".contains and exists: false exclude each other.");
  return { kind: "file", path, exists, contains };
}

function readCommand(check: Members): Check {
  const command = check.requiredText("command");
  const exit = check.number("exit_code", 0, 255, true);
  const timeout = check.number("timeout_seconds", 1, RULE_LIMITS.timeoutSeconds, true);
  return {
    kind: "command",
    command,
    exit_code: exit,
    timeout_seconds: timeout,
  };
}

function readMetric(check: Members): Check {
  const metric = check.oneOf("metric", ["cost_usd", "total_tokens", "run_time_seconds"]);
  const [max, min] = [check.number("max", 0, Number.MAX_SAFE_INTEGER), check.number("min", 0, Number.MAX_SAFE_INTEGER)];
  if (max === undefined && min === undefined) throw check.fail(" needs max, min or both.");
  if (max !== undefined && min !== undefined && min > max)
    throw check.fail(`.min (${min}) must not be greater than max (${max}).`);
  return { kind: "metric", metric, max, min };
}

function readState(check: Members): Check {
  const states = check.value("in");
  const isValid =
    Array.isArray(states) &&
    states.length > 0 &&
    states.every((state) => STATES.includes(state as string)) &&
    new Set(states).size === states.length;
  if (!isValid) {
    throw check.fail(`.in must be a list of different states among ${STATES.join(", ")}.`);
  }
  return { kind: "state", in: states as string[] };
}
