import { printable } from "@millwright/terminal";

/** Exit codes as the command line client has them. */
const EXIT_MISCONFIGURED = 2;
export const EXIT_REFUSED = 3;
/** One-run mode: the offer was not open (any more), and nothing was run; or what was run was not reported, and its next attempt continues it. */
export const EXIT_OFFER_GONE = 4;
export const EXIT_LEFT = 5;

/** Writes to standard error, which reaches the console, through the platform if it started this worker. The log may be a file that is read too late. */
export function printForOperator(sentence: string): void {
  process.stderr.write(`${printable(sentence)}\n`);
}

/** Ends the process because of its settings. */
export function exitMisconfigured(error: Error): never {
  printForOperator(error.message);
  return process.exit(EXIT_MISCONFIGURED);
}
