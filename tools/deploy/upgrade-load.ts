import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

/** A request without a successful response, as it is reported. */
export type Failure = { readonly atSeconds: number; readonly request: string; readonly problem: string };

export type LoadOptions = {
  readonly url: string;
  readonly webhookUrl: string;
  readonly key: string;
  readonly perSecond: number;
};

type Webhook = { readonly path: string; readonly secret: string };

const WEBHOOKS = 8;
/** Of 100 requests of the load: runs created, deliveries, and requests for metrics, which are limited. The rest reads. */
const RUNS_PER_100 = 0.5;
const DELIVERIES_PER_100 = 6;
const METRICS_PER_100 = 0.5;
const SETTLE_MS = 180_000;
const TERMINAL = new Set(["SUCCEEDED", "FAILED", "ERROR", "BLOCKED", "CANCELLED"]);

const scripted = (...steps: string[]): string =>
  ["````scripted", ...steps.map((step) => `- ${step}`), "````"].join("\n");

/** A run whose effects are countable: one file that each attempt would publish again. */
const SHORT = scripted(
  "write: {path: out.txt, content: done}",
  "artifact: {file: out.txt, title: Out}",
  "finish: Done.",
);
/** An agent that works for about `seconds`, longer than the replacement of its worker. */
const long = (seconds: number): string =>
  scripted(
    ...Array.from({ length: seconds / 2 }, (_one, step) => `shell: echo step-${step} >> steps.txt; sleep 2`),
    "artifact: {file: steps.txt, title: Steps}",
    "finish: Done.",
  );

/** Sends requests at a constant rate through the public addresses, and counts what fails. */
export class Load {
  readonly failures: Failure[] = [];
  readonly runs: string[] = [];
  readonly agents: string[] = [];
  deliveries = 0;
  sent = 0;
  /**
   * Whether a request is sent once more if its connection is closed without a response. Each of them is idempotent, by its
   * method, its key or its delivery id.
   */
  isRepeating = false;
  repeated = 0;
  readonly #durations: number[] = [];
  readonly #options: LoadOptions;
  readonly #began = performance.now();
  readonly #open = new Set<Promise<void>>();
  #factory = "";
  #webhooks: readonly Webhook[] = [];
  #isStopped = false;
  #startedDeliveries = 0;
  #loop: Promise<void> | undefined;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Creates what the requests use. */
  async prepare(): Promise<void> {
    const { uid } = await this.must("POST", "/factory", { name: "Upgrade drill" });
    this.#factory = uid;
    this.#webhooks = await Promise.all(
      Array.from({ length: WEBHOOKS }, async (_one, index) => {
        const webhook = await this.must("POST", `/factory/${uid}/webhooks`, { name: `upgrade-${index}` });
        return { path: new URL(webhook.ingress_url).pathname, secret: webhook.secret };
      }),
    );
    this.runs.push(await this.#create(SHORT));
  }

  /** Starts an agent that works for about the given time. */
  async startAgent(seconds: number): Promise<void> {
    await this.#watch(this.#create(long(seconds)).then((uid) => void this.agents.push(uid)));
  }

  start(): void {
    this.#loop = (async () => {
      const began = performance.now();
      for (let turn = 0; !this.#isStopped; turn++) {
        const dueMs = began + (turn * 1_000) / this.#options.perSecond - performance.now();
        if (dueMs > 1) await pause(dueMs);
        this.#send(turn);
      }
    })();
  }

  /** Stops the load and waits for its responses. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loop;
    await Promise.all(this.#open);
  }

  /** Waits until each run is terminal. Returns those that did not succeed with exactly one artifact. */
  async unfinished(): Promise<string[]> {
    const faults: string[] = [];
    const deadline = performance.now() + SETTLE_MS;
    for (const uid of [...this.runs, ...this.agents])
      for (;;) {
        const run = await this.must("GET", `/agent/runs/${uid}`);
        if (!TERMINAL.has(run.state) && performance.now() < deadline) {
          await pause(500);
          continue;
        }
        if (run.state !== "SUCCEEDED" || run.artifacts.length !== 1)
          faults.push(
            `${uid} is ${run.state} with ${run.artifacts.length} artifacts: ${JSON.stringify(run.status_message)}`,
          );
        break;
      }
    return faults;
  }

  /** Returns the percentile of the durations so far, in milliseconds. */
  percentile(share: number): number {
    const sorted = this.#durations.toSorted((a, b) => a - b);
    return Math.round(sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0);
  }

  #send(turn: number): void {
    const position = turn % 200;
    const at = (per100: number, offset: number): boolean =>
      position % Math.round(100 / per100) === offset % Math.round(100 / per100);
    const request = at(RUNS_PER_100, 3)
      ? this.#create(SHORT).then((uid) => void this.runs.push(uid))
      : at(DELIVERIES_PER_100, 5)
        ? this.#deliver()
        : this.must("GET", at(METRICS_PER_100, 7) ? `/factory/${this.#factory}/metrics` : this.#readOf(turn));
    const watched = this.#watch(request).finally(() => this.#open.delete(watched));
    this.#open.add(watched);
  }

  /** Records the duration or the failure of a request. */
  async #watch(request: Promise<unknown>): Promise<void> {
    const began = performance.now();
    this.sent++;
    await request.then(
      () => void this.#durations.push(performance.now() - began),
      (error: Error) =>
        void this.failures.push({
          atSeconds: Math.round((began - this.#began) / 100) / 10,
          request: error.message,
          problem: causesOf(error).join(": "),
        }),
    );
  }

  #readOf(turn: number): string {
    const reads = [
      "/whoami",
      "/agent/runs?limit=20",
      `/agent/runs/${this.runs[turn % this.runs.length]}`,
      "/factory",
      `/factory/${this.#factory}/tasks`,
      `/factory/${this.#factory}/automations`,
      `/factory/${this.#factory}/scorers`,
      "/agent/schedules",
    ];
    return reads[turn % reads.length]!;
  }

  async #create(prompt: string): Promise<string> {
    return (await this.must("POST", "/agent/runs", { prompt })).run_id;
  }

  async #deliver(): Promise<void> {
    const delivery = this.#startedDeliveries++;
    const { path, secret } = this.#webhooks[delivery % this.#webhooks.length]!;
    const headers = { authorization: `Bearer ${secret}`, "x-service-delivery-id": randomUUID() };
    const body = JSON.stringify({ delivery });
    await this.#fetch(`${this.#options.webhookUrl}${path}`, { method: "POST", headers, body });
    this.deliveries++;
  }

  /** Returns the body of a successful response. Throws an Error with the response otherwise. */
  async must(method: string, path: string, body?: object): Promise<any> {
    const headers = {
      authorization: `Bearer ${this.#options.key}`,
      "content-type": "application/json",
      ...(body && { "idempotency-key": randomUUID() }),
    };
    const url = `${this.#options.url}/api/v1${path}`;
    return JSON.parse(await this.#fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) }));
  }

  async #fetch(url: string, init: RequestInit): Promise<string> {
    try {
      return await fetchText(url, init);
    } catch (error) {
      if (!this.isRepeating || !isClosedConnection(error as Error)) throw error;
      this.repeated++;
      return fetchText(url, init);
    }
  }
}

const CLOSED = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

const isClosedConnection = ({ cause }: Error & { readonly code?: string }): boolean =>
  cause instanceof Error && (CLOSED.has((cause as { code?: string }).code ?? "") || isClosedConnection(cause));

const causesOf = ({ cause }: Error): string[] => (cause instanceof Error ? [cause.message, ...causesOf(cause)] : []);

async function fetchText(url: string, init: RequestInit): Promise<string> {
  const what = `${init.method} ${new URL(url).pathname}`;
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(30_000) });
    const text = await response.text();
    if (response.ok) return text;
    throw new Error(`${what}: ${response.status}`, { cause: new Error(text.slice(0, 300)) });
  } catch (error) {
    if ((error as Error).message.startsWith(what)) throw error;
    throw new Error(`${what}: no response`, { cause: error });
  }
}
