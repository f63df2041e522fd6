import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

const DURATION_BUCKETS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * The metrics of one process, in Prometheus' text form. Asking twice for a name gives the same metric, so services that
 * share a process may share this too. Label values must come from small fixed sets: no uids.
 */
export class Metrics {
  readonly #registry = new Registry();

  /** `processMetrics` adds memory, CPU and event-loop metrics of this process. */
  constructor(options: { processMetrics?: boolean } = {}) {
    if (options.processMetrics) collectDefaultMetrics({ register: this.#registry });
  }

  counter<L extends string = never>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    return this.#existing<Counter<L>>(name) ?? new Counter({ name, help, labelNames: [...labelNames], registers: [this.#registry] });
  }

  gauge<L extends string = never>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> {
    return this.#existing<Gauge<L>>(name) ?? new Gauge({ name, help, labelNames: [...labelNames], registers: [this.#registry] });
  }

  /** Buckets are in seconds unless given. */
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

  /** What `/metrics` answers. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** The content type of `text()`. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  #existing<M>(name: string): M | undefined {
    return this.#registry.getSingleMetric(name) as M | undefined;
  }
}
