import { pino, stdTimeFunctions, type DestinationStream, type Logger as Pino } from "pino";
import { allowListed, type LogField, type LogFields } from "./log-fields.ts";
import { currentScope } from "./scope.ts";

/**
 * JSON lines. Messages are constant texts; what varies are fields, from the list in log-fields.ts. A line written on behalf of a request,
 * an event or an execution has the fields of its scope too (request, trace, span, run).
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
  /** A logger whose every line has these fields too. */
  child(fields: LogFields): Logger;
}

export type LoggerOptions = {
  readonly service: string;
  readonly level?: "debug" | "info" | "warn" | "error" | "silent";
  /** Where lines go; standard output by default. */
  readonly destination?: DestinationStream;
};

/** The logger of one service. Lines are written synchronously, so that the last one before a crash is not lost. */
export function createLogger(options: LoggerOptions): Logger {
  const base = pino(
    {
      level: options.level ?? "info",
      base: { service: options.service },
      timestamp: stdTimeFunctions.isoTime,
      messageKey: "message",
      formatters: { level: (label) => ({ level: label }) },
    },
    options.destination ?? pino.destination({ dest: 1, sync: true }),
  );
  return wrap(base, {});
}

/** `bound`: what pino already writes into every line of `base`; said once is enough. */
function wrap(base: Pino, bound: LogFields): Logger {
  const at =
    (level: "debug" | "info" | "warn" | "error") =>
    (fields: LogFields | string, message?: string): void => {
      if (!base.isLevelEnabled(level)) return;
      const line = scopeFields(bound);
      if (typeof fields === "string") base[level](line, fields);
      else base[level](allowListed(fields, line), message);
    };
  return {
    debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"),
    child: (fields) => wrap(base.child(allowListed(fields)), { ...bound, ...fields }),
  };
}

function scopeFields(bound: LogFields): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  const fields = currentScope()?.fields;
  for (const name in fields) {
    const value = fields[name as LogField];
    if (value !== undefined && bound[name as LogField] === undefined) kept[name] = value;
  }
  return kept;
}
