import { printable } from "@millwright/terminal";

/** The same exit codes as those of the command line client. */
const EXIT_MISCONFIGURED = 2;
export const EXIT_REFUSED = 3;
/**
 * One-run mode: the offer was not open and nothing was run; or the execution was run but its result was not reported,
 * and its next attempt continues it.
 */
export const EXIT_OFFER_GONE = 4;
export const EXIT_ABANDONED = 5;

/**
 * Writes a message to standard error, which reaches the console, also if the platform started this worker. The log may
 * be a file that the operator reads too late.
 */
export function printForOperator(sentence: string): void {
  process.stderr.write(`${printable(sentence)}\n`);
}

/** Prints the configuration error and ends the process. */
export function exitMisconfigured(error: Error): never {
  printForOperator(error.message);
  return process.exit(EXIT_MISCONFIGURED);
}
