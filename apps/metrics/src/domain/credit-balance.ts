export type Grant = {
  readonly micros: bigint;
  readonly grantedAt: Date;
  /** Exclusive; undefined: never. */
  readonly expiresAt: Date | undefined;
};
/** Spend of one UTC day. */
export type DaySpend = { readonly day: Date; readonly micros: bigint };

/** Micro-dollars; granted + overdrawn = spent + expired + remaining. */
export type CreditBalance = {
  readonly granted: bigint;
  readonly spent: bigint;
  readonly expired: bigint;
  readonly remaining: bigint;
  /** Spend that no grant covers. */
  readonly overdrawn: bigint;
};

const DAY_MS = 86_400_000;

/**
 * Takes the spend of each day, oldest first, from the grants that cover the day: those that expire first are used
 * first. A grant covers every UTC day that it touches. Spend before the day of the first grant does not count.
 */
export function creditBalance(grants: readonly Grant[], days: readonly DaySpend[], now: Date): CreditBalance {
  const left = grants.toSorted(byExpiry).map((grant) => ({ grant, micros: grant.micros }));
  const counted = days.filter(({ day }) => grants.some(({ grantedAt }) => grantedAt.getTime() < endOf(day)));
  let overdrawn = 0n;
  for (const { day, micros } of counted.toSorted((a, b) => a.day.getTime() - b.day.getTime())) {
    let open = micros;
    for (const each of left.filter(({ grant }) => covers(grant, day))) {
      const used = open < each.micros ? open : each.micros;
      each.micros -= used;
      open -= used;
    }
    overdrawn += open;
  }
  const isExpired = ({ expiresAt }: Grant): boolean => expiresAt !== undefined && expiresAt <= now;
  return {
    granted: sum(grants.map(({ micros }) => micros)),
    spent: sum(counted.map(({ micros }) => micros)),
    expired: sum(left.flatMap(({ grant, micros }) => (isExpired(grant) ? [micros] : []))),
    remaining: sum(left.flatMap(({ grant, micros }) => (isExpired(grant) ? [] : [micros]))),
    overdrawn,
  };
}

const endOf = (day: Date): number => day.getTime() + DAY_MS;
const covers = ({ grantedAt, expiresAt }: Grant, day: Date): boolean =>
  grantedAt.getTime() < endOf(day) && (expiresAt === undefined || expiresAt > day);
const expiryMs = ({ expiresAt }: Grant): number => expiresAt?.getTime() ?? Number.MAX_SAFE_INTEGER;
const byExpiry = (a: Grant, b: Grant): number =>
  expiryMs(a) - expiryMs(b) || a.grantedAt.getTime() - b.grantedAt.getTime();
const sum = (all: readonly bigint[]): bigint => all.reduce((total, each) => total + each, 0n);
