import autocannon from "autocannon";
import { costPerOperation, type CostMeter, type Usage } from "./cost.ts";
import type { NamedProcess } from "./process-stat.ts";
import { median, round, summarize } from "./samples.ts";
import type { Measured } from "./results.ts";

export type Endpoint = {
  readonly who: string;
  /** The processes that serve it, besides those of PostgreSQL. */
  readonly processes: readonly NamedProcess[];
  readonly url: string;
  readonly method: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Paths that are requested in turn. If absent, the path of `url` is requested. */
  readonly paths?: readonly string[];
};

type Sample = { readonly perSecond: number; readonly latencies: readonly number[] };

/**
 * Sends requests to one endpoint over keep-alive connections. Throws an Error if any request fails, because the
 * measurement would be meaningless.
 */
export function drive(endpoint: Endpoint, connections: number, seconds: number): Promise<Sample> {
  const { url, method, headers, body, paths } = endpoint;
  const latencies: number[] = [];
  const failures = new Map<number, number>();
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    const options = {
      url,
      method,
      connections,
      duration: seconds,
      timeout: 10,
      headers,
      body,
      requests: paths?.map((path) => ({ path })),
    };
    const run = autocannon(options, (error) => {
      if (error) return reject(error);
      if (failures.size > 0 || latencies.length === 0)
        return reject(
          new Error(
            `${endpoint.who}: error statuses ${JSON.stringify([...failures])} among ${latencies.length} responses`,
          ),
        );
      resolve({ perSecond: latencies.length / ((performance.now() - startedMs) / 1000), latencies });
    });
    run.on("response", (_client: unknown, status: number, _bytes: number, ms: number) => {
      latencies.push(ms);
      if (status >= 300) failures.set(status, (failures.get(status) ?? 0) + 1);
    });
  });
}

/** Seconds of the turn in which statements are counted. */
const COUNTED_SECONDS = 0.5;

/**
 * Measures several endpoints in turn, for several rounds, so that other load on the machine affects all of them
 * equally. The ratio to the first endpoint, which is the platform's, is the median over the rounds. Statements are
 * counted in a turn of their own, because counting takes time.
 */
export async function compare(
  what: string,
  endpoints: readonly Endpoint[],
  o: { connections: number; seconds: number; rounds: number; meter: CostMeter },
): Promise<Measured[]> {
  const samples = endpoints.map((): Sample[] => []);
  const usages = endpoints.map((): Usage[] => []);
  for (let turn = 0; turn < o.rounds; turn++) {
    for (const [n, endpoint] of endpoints.entries()) {
      const { result, usage } = await o.meter.measure(endpoint.processes, () =>
        drive(endpoint, o.connections, o.seconds),
      );
      samples[n]!.push(result);
      usages[n]!.push(usage);
    }
  }
  const statements: number[] = [];
  for (const endpoint of endpoints) statements.push(await statementsOf(endpoint, o.connections, o.meter));
  return endpoints.map(({ who }, n) => {
    const latencies = samples[n]!.flatMap((sample) => sample.latencies);
    return {
      what,
      who,
      perSecond: round(median(samples[n]!.map((sample) => sample.perSecond))),
      latencyMs: summarize(latencies),
      ours:
        n > 0
          ? round(median(samples[n]!.map((sample, turn) => samples[0]![turn]!.perSecond / sample.perSecond)))
          : undefined,
      cost: costPerOperation(usages[n]!, latencies.length, statements[n]),
    };
  });
}

/** Returns the statements per operation. */
async function statementsOf(endpoint: Endpoint, connections: number, meter: CostMeter): Promise<number> {
  const { who, processes } = endpoint;
  let operations = 0;
  const calls = await meter.statements(
    who === "millwright" ? "millwright_" : "bench_",
    async () => void (operations = (await drive(endpoint, connections, COUNTED_SECONDS)).latencies.length),
    processes,
  );
  return calls / operations;
}
