import type { PullRequestState } from "./pull-request-fact.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A repository's list of changes: one request that costs nothing while nothing changes. */
const REPOSITORY_MS = { min: MINUTE_MS, max: 10 * MINUTE_MS } as const;
const OPEN_MS = { min: 2 * MINUTE_MS, max: 6 * HOUR_MS } as const;
const LOCAL_MS = { min: MINUTE_MS / 4, max: 10 * MINUTE_MS } as const;
/** How long after its end a pull request is read. */
const AFTER_END_MS = [10 * MINUTE_MS, HOUR_MS, 24 * HOUR_MS];
const FAILURE_MS = { min: 30_000, max: 6 * HOUR_MS } as const;

/** The interval is a quarter of the time since the last change: active items are read often, old ones rarely. */
const pauseAfter = (changedAt: Date, now: Date, { min, max }: { readonly min: number; readonly max: number }): number =>
  Math.min(max, Math.max(min, (now.getTime() - changedAt.getTime()) / 4));

const later = (now: Date, ms: number, timeScale: number): Date => new Date(now.getTime() + ms / timeScale);

/** Returns when a repository's list of changes is read again. `timeScale` divides every wait. */
export const nextRepositoryPoll = (changedAt: Date, now: Date, timeScale: number): Date =>
  later(now, pauseAfter(changedAt, now, REPOSITORY_MS), timeScale);

/** Returns when a pull request is read again; undefined: not unless its repository's list reports a change. */
export function nextPullRequestPoll(
  {
    provider,
    state,
    changedAt,
  }: { readonly provider: string; readonly state: PullRequestState; readonly changedAt: Date },
  now: Date,
  timeScale: number,
): Date | undefined {
  const isOpen = state === "open" || state === "draft";
  if (provider === "LOCAL") return isOpen ? later(now, pauseAfter(changedAt, now, LOCAL_MS), timeScale) : undefined;
  if (isOpen) return later(now, pauseAfter(changedAt, now, OPEN_MS), timeScale);
  const planned = AFTER_END_MS.map((ms) => changedAt.getTime() + ms / timeScale).find((time) => time > now.getTime());
  return planned === undefined ? undefined : new Date(planned);
}

/** Returns when a failed read is retried, with exponential backoff. */
export const nextTry = (failures: number, now: Date, timeScale: number): Date =>
  later(now, Math.min(FAILURE_MS.max, FAILURE_MS.min * 2 ** Math.min(failures, 20)), timeScale);
