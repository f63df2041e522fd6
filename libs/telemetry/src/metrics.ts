import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/** How long a scrape waits for its readers. */
const LOOK_MS = 2_000;
const DURATION_BUCKETS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * The metrics of one process, in Prometheus' text format. A repeated name returns the same metric, so services that
 * share a process may share this too. Label values must come from small fixed sets: no uids.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #scrapedGauges = new Set<Gauge>();
  readonly #readers = new Set<{ readonly name: string; readonly read: () => unknown }>();
  #reading: Promise<void> | undefined;

  /** `processMetrics` adds memory, CPU and event-loop metrics of this process. */
  constructor(options: { processMetrics?: boolean } = {}) {
    if (options.processMetrics) collectDefaultMetrics({ register: this.#registry });
  }

  counter<L extends string = never>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    return (
      this.#existing<Counter<L>>(name) ??
      new Counter({ name, help, labelNames: [...labelNames], registers: [this.#registry] })
    );
  }

  gauge<L extends string = never>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> {
    return (
      this.#existing<Gauge<L>>(name) ??
      new Gauge({ name, help, labelNames: [...labelNames], registers: [this.#registry] })
    );
  }

  /** Bucket bounds in seconds by default. */
  histogram<L extends string = never>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
    buckets: readonly number[] = DURATION_BUCKETS_SECONDS,
  ): Histogram<L> {
    return (
      this.#existing<Histogram<L>>(name) ??
      new Histogram({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers: [this.#registry] })
    );
  }

  /**
   * Returns a gauge with labels for values that are read on demand: functions given to `onScrape` set it for each
   * scrape.
   */
  scrapedGauge<L extends string>(name: string, help: string, labelNames: readonly L[]): Gauge<L> {
    const gauge = this.gauge(name, help, labelNames);
    this.#scrapedGauges.add(gauge);
    return gauge;
  }

  /**
   * Registers a function that sets gauges at each scrape. If it fails, or takes longer than two seconds, its gauges
   * have no value and the failure is counted under `name`. Returns a function that unregisters it.
   */
  onScrape(name: string, read: () => unknown): () => void {
    const reader = { name, read };
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  /** Returns the response of `/metrics`. Concurrent scrapes share one read. */
  async text(): Promise<string> {
    this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined));
    await this.#reading;
    return this.#registry.metrics();
  }

  async #readAll(): Promise<void> {
    const failures = this.counter(
      "millwright_scrape_failures_total",
      "Reads for a scrape that failed or took too long.",
      ["reader"],
    );
    for (const gauge of this.#scrapedGauges) gauge.reset();
    await Promise.all(
      [...this.#readers].map(async ({ name, read }) => {
        if (!(await isInTime(async () => read()))) failures.inc({ reader: name });
      }),
    );
  }

  /** The content type of `text()`. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  #existing<M>(name: string): M | undefined {
    return this.#registry.getSingleMetric(name) as M | undefined;
  }
}

async function isInTime(read: () => Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), LOOK_MS)));
  try {
    return await Promise.race([
      read().then(
        () => true,
        () => false,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
