import { Client, type ClientConfig, type QueryConfig, type QueryResult } from "pg";
import { corkPerTurn } from "./pipeline.ts";

/** How long the pool is used after a failed connection. */
const REST_MS = 1_000;

/**
 * A few connections that all callers share: no caller waits for a free one, and concurrent statements are pipelined.
 * For short reads only, because each waits for those before it. Each connection begins with the statements `settings`.
 * `otherwise` executes statements while there is no connection.
 */
export class SharedConnections {
  readonly #config: ClientConfig;
  readonly #settings: string;
  readonly #otherwise: (query: QueryConfig) => Promise<QueryResult>;
  readonly #places: Place[];
  #isClosed = false;

  constructor(
    config: ClientConfig,
    settings: string,
    count: number,
    otherwise: (query: QueryConfig) => Promise<QueryResult>,
  ) {
    this.#config = { ...config, pipeline: true };
    this.#settings = settings;
    this.#otherwise = otherwise;
    this.#places = Array.from({ length: count }, () => ({ client: undefined, busy: 0, restsUntilMs: 0 }));
  }

  async query(query: QueryConfig): Promise<QueryResult> {
    const place = this.#places.reduce((best, candidate) => (candidate.busy < best.busy ? candidate : best));
    if (!place.client) {
      if (!this.#isClosed && performance.now() >= place.restsUntilMs) void this.#connect(place);
      return this.#otherwise(query);
    }
    place.busy += 1;
    try {
      corkPerTurn(place.client);
      return await place.client.query(query);
    } finally {
      place.busy -= 1;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#places.map(async ({ client }) => client?.end()));
  }

  async #connect(place: Place): Promise<void> {
    place.restsUntilMs = Number.POSITIVE_INFINITY; // until the connection is established
    const client = new Client(this.#config);
    const lose = (): void => {
      if (place.client === client) place.client = undefined;
      place.restsUntilMs = performance.now() + REST_MS;
    };
    client
      .once("error", lose)
      .once("end", lose)
      .on("error", () => {}); // its queries reject with the error themselves
    try {
      await client.connect();
      await client.query(this.#settings);
      if (this.#isClosed) await client.end();
      else place.client = client;
    } catch {
      lose();
      void client.end().catch(() => {}); // connected, if the settings failed
    }
  }
}

type Place = { client: Client | undefined; busy: number; restsUntilMs: number };
