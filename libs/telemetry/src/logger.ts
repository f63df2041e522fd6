import { pino, stdTimeFunctions, type DestinationStream, type Logger as Pino } from "pino";
import { allowListed, type LogFields } from "./log-fields.ts";
import { LineOutput } from "./line-output.ts";
import { currentScope } from "./scope.ts";

const STDOUT = 1;

/**
 * Writes JSON lines. Messages are constant texts; variable data are fields from the list in log-fields.ts. A line
 * written within a scope also has the scope's fields (request, trace, span, run).
 */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  debug(message: string): void;
  info(fields: LogFields, message: string): void;
  info(message: string): void;
  warn(fields: LogFields, message: string): void;
  warn(message: string): void;
  error(fields: LogFields, message: string): void;
  error(message: string): void;
  /** Returns a logger that adds these fields to every line. */
  child(fields: LogFields): Logger;
}

export type LoggerOptions = {
  readonly service: string;
  readonly level?: "debug" | "info" | "warn" | "error" | "silent";
  /** Output of the lines; standard output by default. */
  readonly destination?: DestinationStream;
};

/**
 * Creates the logger of one service. Lines are written synchronously, so that the last one before a crash is not lost;
 * writing never throws.
 */
export function createLogger(options: LoggerOptions): Logger {
  const output = pino(
    {
      level: options.level ?? "info",
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      messageKey: "message",
      formatters: { level: (label) => ({ level: label }) },
    },
    options.destination ?? new LineOutput(() => STDOUT),
  );
  return loggerOn(output, { service: options.service });
}

/**
 * `bound`: fields of every line. A line has each key once: its own fields override bound ones, and those override the
 * scope's.
 */
function loggerOn(output: Pino, bound: LogFields): Logger {
  const at =
    (level: "debug" | "info" | "warn" | "error") =>
    (fields: LogFields | string, message?: string): void => {
      if (!output.isLevelEnabled(level)) return;
      const line = { ...currentScope()?.fields, ...bound };
      if (typeof fields === "string") output[level](line, fields);
      else output[level](allowListed(fields, line), message);
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => loggerOn(output, { ...bound, ...allowListed(fields) }),
  };
}
