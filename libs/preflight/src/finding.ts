/** The result of one check. */
export type Finding = {
  /** What was checked, such as "database rights". */
  readonly check: string;
  /** Where, without credentials. */
  readonly address: string;
  /** What is wrong; null if the check passed. */
  readonly problem: string | null;
  /** What to do about the problem. */
  readonly remedy: string | null;
};

export const isFailed = ({ problem }: Finding): boolean => problem !== null;

/** Returns a function that makes the findings of one address. */
export const findingsAt =
  (address: string) =>
  (check: string, problem?: string | null, remedy?: string): Finding => ({
    check,
    address,
    problem: problem ?? null,
    remedy: problem === undefined || problem === null ? null : (remedy ?? null),
  });

/** Returns a URL without user, password and parameters; a text that is no URL is returned as "an invalid URL". */
export function addressOf(url: string): string {
  if (!URL.canParse(url)) return "an invalid URL";
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`;
}

/**
 * Returns the message of an error; for an error of several attempts, such as one for each address of a host, the
 * messages of all of them.
 */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.map((cause) => messageOf(cause)).join("; ");
  const { message, code } = error as { message?: string; code?: unknown };
  return message || String(code ?? error);
}
