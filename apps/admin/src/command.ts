/** What a command is run with. */
export type Admin = {
  readonly env: NodeJS.ProcessEnv;
  readonly print: (text: string) => void;
};

export type Command = {
  /** Such as "rebuild metrics". */
  readonly words: string;
  /** As in the usage line; a last one in brackets may be left out, one that ends in ... may be repeated. */
  readonly args: readonly string[];
  readonly summary: string;
  readonly details: readonly string[];
  /** Throws a `UsageError` if the arguments are wrong; any other error is failed work. */
  run(admin: Admin, args: readonly string[]): Promise<void>;
};

/** The command line is wrong. */
export class UsageError extends Error {}
