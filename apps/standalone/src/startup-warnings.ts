type Destination = { write(line: string): void };
type LogLine = { level?: string; message?: string; error?: { message?: string } };

/** Copies the warnings and errors of a log to the console until the platform is ready: the log is a file that nobody reads at that time. */
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

  /** From now on the log alone has the warnings. */
  started(): void {
    this.#isStarting = false;
  }
}
