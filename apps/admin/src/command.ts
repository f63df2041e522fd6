/** What a command is run with. */
export type Admin = {
  readonly env: NodeJS.ProcessEnv;
  readonly print: (text: string) => void;
};

/** Options by name; a switch is true if it was given. */
export type Values = Readonly<Record<string, string | boolean | undefined>>;

export type Command = {
  /** Such as "rebuild metrics". */
  readonly words: string;
  /** As in the usage line; one in brackets may be left out, one that ends in ... may be repeated. */
  readonly args: readonly string[];
  /** Flags as commander writes them ("--out <file>"), with their meaning. */
  readonly options?: Readonly<Record<string, string>>;
  readonly summary: string;
  readonly details: readonly string[];
  /** The command needs the database of one service (`DATABASE_URL`), not those of all services. */
  readonly needsOneDatabase?: true;
  /**
   * Throws a `UsageError` if the arguments are wrong; any other error is failed work. Returns false if the work is done
   * and its result is a failure, such as that of a check.
   */
  run(admin: Admin, args: readonly string[], values: Values): Promise<boolean | void>;
};

/** The command line is wrong. */
export class UsageError extends Error {}
