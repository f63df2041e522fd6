/** From `fromMs`, local time is UTC plus `offsetMs`. */
type Segment = { readonly fromMs: number; readonly offsetMs: number };

const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;

/**
 * Returns whether a text is the name of an IANA time zone known to this machine (`Europe/Berlin`, `UTC`), not an
 * offset.
 */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    return Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

/**
 * Local time of one zone. Computes each year once: a query of the system's calendar takes microseconds, a lookup
 * nanoseconds.
 */
export class ZoneOffsets {
  readonly #format: Intl.DateTimeFormat;
  readonly #years = new Map<number, readonly Segment[]>();

  private constructor(zone: string) {
    const numeric = "numeric";
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      era: "short",
      year: numeric,
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    });
  }

  static of(zone: string): ZoneOffsets {
    const known = zones.get(zone);
    if (known) return known;
    const made = new ZoneOffsets(zone);
    zones.set(zone, made);
    return made;
  }

  offsetAt(ms: number): number {
    return this.#segments(new Date(ms).getUTCFullYear()).findLast(({ fromMs }) => fromMs <= ms)!.offsetMs;
  }

  /** Returns the first instant after `ms`, and not after `untilMs`, at which the offset changes. */
  nextChange(ms: number, untilMs: number): number | undefined {
    for (let year = new Date(ms).getUTCFullYear(); Date.UTC(year, 0, 1) <= untilMs; year += 1) {
      const change = this.#segments(year).find(({ fromMs }, index) => index > 0 && fromMs > ms);
      if (change) return change.fromMs <= untilMs ? change.fromMs : undefined;
    }
    return undefined;
  }

  /** The offsets of a year of UTC; the first begins with the year. */
  #segments(year: number): readonly Segment[] {
    const known = this.#years.get(year);
    if (known) return known;
    const [startMs, endMs] = [Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1)];
    const segments: Segment[] = [{ fromMs: startMs, offsetMs: this.#read(startMs) }];
    for (let ms = startMs; ms < endMs; ms += DAY_MS) {
      if (this.#read(ms + DAY_MS) !== segments.at(-1)!.offsetMs)
        segments.push(this.#change(ms, ms + DAY_MS, segments.at(-1)!.offsetMs));
    }
    this.#years.set(year, segments);
    return segments;
  }

  /** Returns the second at which the offset stops being `offsetMs`; a day has at most one change. */
  #change(fromMs: number, toMs: number, offsetMs: number): Segment {
    let [before, after] = [fromMs, toMs];
    while (after - before > SECOND_MS) {
      const middle = Math.floor((before + after) / 2 / SECOND_MS) * SECOND_MS;
      if (this.#read(middle) === offsetMs) before = middle;
      else after = middle;
    }
    return { fromMs: after, offsetMs: this.#read(after) };
  }

  #read(ms: number): number {
    const parts = Object.fromEntries(this.#format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    return (
      Date.UTC(parts["year"]!, parts["month"]! - 1, parts["day"], parts["hour"], parts["minute"], parts["second"]) -
      Math.floor(ms / SECOND_MS) * SECOND_MS
    );
  }
}

const zones = new Map<string, ZoneOffsets>();
