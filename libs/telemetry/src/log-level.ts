import { optional } from "@millwright/config";

/** The levels of log lines, each with all that follow it. */
export const logLevel = optional.oneOf("LOG_LEVEL", "The least important level of lines that are logged.", {
  values: ["debug", "info", "warn", "error", "silent"],
  default: "info",
});
