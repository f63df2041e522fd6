import { open } from "node:fs/promises";
import { LOG_FIELDS } from "@millwright/telemetry";

/** Only the end of a log is read. */
const BYTES_MAX = 2 * 1024 * 1024;
const LINES_MAX = 2_000;

/** Fields whose values depend on the installation or contain texts of others. */
const OMITTED: ReadonlySet<string> = new Set(["error", "path", "address", "database", "principalUid"]);
const FIELDS: readonly string[] = ["level", "time", ...LOG_FIELDS.filter((name) => !OMITTED.has(name)), "message"];

/** Values of fields are ids, words of the code, and numbers. */
const VALUE = /^[\w.:/@+ -]{1,200}$/;

/**
 * Returns the newest lines of a log with listed fields only: the names and stack frames of errors, and never their
 * messages. Lines that are not JSON are counted.
 */
export async function logLines(path: string): Promise<string> {
  const lines = (await endOf(path)).split("\n").filter(Boolean).slice(-LINES_MAX);
  const retained = lines.map(redactLine).filter((line) => line !== undefined);
  const dropped = lines.length - retained.length;
  return [
    ...retained,
    ...(dropped > 0 ? [JSON.stringify({ message: `${dropped} lines are not JSON and omitted` })] : []),
  ].join("\n");
}

function redactLine(line: string): string | undefined {
  try {
    const entry = JSON.parse(line) as Record<string, unknown>;
    const fields = FIELDS.filter((name) => isPlain(entry[name])).map((name) => [name, entry[name]]);
    const errors = errorOf(entry["error"] ?? entry["err"]);
    return JSON.stringify({ ...Object.fromEntries(fields), ...(errors && { error: errors }) });
  } catch {
    return undefined;
  }
}

const isPlain = (value: unknown): boolean =>
  typeof value === "number" || typeof value === "boolean" || (typeof value === "string" && VALUE.test(value));

type LoggedError = Readonly<Record<"name" | "reason" | "code" | "stack" | "cause", unknown>>;

function errorOf(error: unknown): object | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { stack, cause, ...named } = error as LoggedError;
  const frames = typeof stack === "string" ? stack.split("\n").filter((line) => /^ +at .*:\d+:\d+\)?$/.test(line)) : [];
  const inner = errorOf(cause);
  return {
    ...Object.fromEntries(
      (["name", "reason", "code"] as const)
        .map((key) => [key, named[key]] as const)
        .filter(([, value]) => typeof value === "string" && /^\w{1,60}$/.test(value)),
    ),
    frames: frames.map((frame) => frame.trim().replace(/\(?(?:file:\/\/)?\/.*\/((?:apps|libs|node_modules)\/)/, "($1")),
    ...(inner && { cause: inner }),
  };
}

async function endOf(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const length = Math.min(size, BYTES_MAX);
    const { buffer } = await file.read({ buffer: Buffer.alloc(length), position: size - length });
    const text = buffer.toString("utf8");
    return length < size ? text.slice(text.indexOf("\n") + 1) : text;
  } finally {
    await file.close();
  }
}
