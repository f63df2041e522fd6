type Destination = { write(line: string): void };
type LogLine = { level?: string; message?: string; error?: { message?: string } };

/**
 * Copies the warnings and errors of a log to the console until the platform is ready, because users do not read the log
 * file during the start.
 */
export class StartupWarnings implements Destination {
  readonly #log: Destination;
  readonly #print: (line: string) => void;
  #isStarting = true;

  constructor(log: Destination, print: (line: string) => void) {
    this.#log = log;
    this.#print = print;
  }

  write(line: string): void {
    this.#log.write(line);
    if (!this.#isStarting || !/"level":"(?:warn|error)"/.test(line)) return;
    const { level, message, error } = JSON.parse(line) as LogLine;
    if (level === "warn" || level === "error") this.#print([message, error?.message].filter(Boolean).join(": "));
  }

  /** Ends the copying. */
  started(): void {
    this.#isStarting = false;
  }
}
