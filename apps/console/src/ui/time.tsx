import { useSyncExternalStore, type ReactNode } from "react";
import { Tooltip } from "./tooltip.tsx";

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const TICK_MS = 10_000;
/** A clock of the server that is ahead by less than this does not place events in the future. */
const CLOCK_SKEW_MAX_S = 5;

/** The current time in steps of ten seconds, shared by all components. */
let now = Date.now();
const subscribe = (listener: () => void): (() => void) => {
  const timer = setInterval(() => {
    now = Date.now();
    listener();
  }, TICK_MS);
  return () => clearInterval(timer);
};

/** Returns the current time, and renders again every ten seconds. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now);

/** Returns an instant relative to another: "3 min. ago". Instants of the next seconds are "now". */
export function relativeTime(instant: number, to: number): string {
  const seconds = (instant - to) / 1000;
  for (const [unit, size] of UNITS)
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  return seconds < -1 || seconds > CLOCK_SKEW_MAX_S ? relative.format(Math.trunc(seconds), "second") : "now";
}

/** Shows an RFC 3339 instant relative to now, and exactly on hover and focus. */
export function Time({ at }: { at: string | null | undefined }): ReactNode {
  useNow();
  if (!at) return <span className="soft">–</span>;
  const instant = Date.parse(at);
  return (
    <Tooltip text={`${exact.format(instant)} · ${at}`}>
      <time dateTime={at} tabIndex={0} className="nowrap">
        {relativeTime(instant, Date.now())}
      </time>
    </Tooltip>
  );
}

/** Returns an ISO 8601 duration such as "PT1M2.5S" as "1m 2.5s". */
export function readableDuration(iso: string): string {
  const [, days, hours, minutes, seconds] = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(iso) ?? [];
  const parts = [days && `${days}d`, hours && `${hours}h`, minutes && `${minutes}m`];
  if (seconds !== undefined) parts.push(`${Number(Number(seconds).toFixed(Number(seconds) < 10 ? 1 : 0))}s`);
  return parts.filter(Boolean).join(" ") || "0s";
}
