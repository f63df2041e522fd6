import type { LogFields, Logger } from "@millwright/telemetry";

export type LogEntry = { level: "debug" | "info" | "warn" | "error"; fields: LogFields; message: string };

/** Returns a logger that stores its entries instead of printing them. */
export function memoryLog(): Logger & { entries: LogEntry[] } {
  const entries: LogEntry[] = [];
  return { entries, ...loggerInto(entries, {}) };
}

function loggerInto(entries: LogEntry[], common: LogFields): Logger {
  const at =
    (level: LogEntry["level"]) =>
    (fields: LogFields | string, message = "") =>
      void entries.push(
        typeof fields === "string"
          ? { level, fields: common, message: fields }
          : { level, fields: { ...common, ...fields }, message },
      );
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => loggerInto(entries, { ...common, ...fields }),
  };
}
