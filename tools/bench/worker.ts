import { randomUUID } from "node:crypto";
import { createClient, type Client } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { worker } from "@millwright/contracts";

/** An execution whose lease the worker owns. */
export type OwnedLease = { readonly runUid: string; readonly executionId: bigint; readonly attempt: number };

/** A worker that implements the whole protocol but executes nothing: no sandbox, no agent, no files. */
export class ProtocolWorker {
  readonly #client: Client<typeof worker.WorkerService>;
  readonly #headers: Record<string, string>;

  private constructor(client: Client<typeof worker.WorkerService>, token: string) {
    this.#client = client;
    this.#headers = { authorization: `Bearer ${token}` };
  }

  static async register(url: string, key: string, slots: number, workerId = "bench"): Promise<ProtocolWorker> {
    const client = createClient(
      worker.WorkerService,
      createConnectTransport({ baseUrl: `${url}/rpc`, httpVersion: "1.1" }),
    );
    const { sessionToken } = await client.register(
      {
        workerId,
        instanceUid: randomUUID(),
        version: "0.1.0",
        backend: "bench",
        slots,
        harnesses: [{ type: "oz", version: "1" }],
        sandbox: "none",
      },
      { headers: { authorization: `Bearer ${key}` } },
    );
    return new ProtocolWorker(client, sessionToken);
  }

  /** Waits for offers and accepts them. */
  async claim(slots: number, waitMs: number, signal?: AbortSignal): Promise<OwnedLease[]> {
    const { offers } = await this.#client.lease(
      { freeSlots: slots, waitMs },
      { headers: this.#headers, timeoutMs: waitMs + 10_000, ...(signal && { signal }) },
    );
    if (offers.length === 0) return [];
    const { assignments } = await this.#client.accept(
      { leases: offers.map(({ executionId, attempt }) => ({ executionId, attempt })) },
      { headers: this.#headers },
    );
    return assignments.map(({ runUid, executionId, attempt }) => ({ runUid, executionId, attempt }));
  }

  /** Reads the stream of directives and ignores them. Throws an Error when the stream ends. */
  async subscribe(signal: AbortSignal): Promise<never> {
    for await (const _ of this.#client.subscribe({}, { headers: this.#headers, signal }));
    throw new Error("The stream of directives has ended.");
  }

  /** Renews the leases of the worker. Throws an Error if any lease is lost. */
  async heartbeat(owned: readonly OwnedLease[]): Promise<void> {
    const leases = owned.map(({ executionId, attempt }) => ({ executionId, attempt, phase: "RUNNING" }));
    const response = await this.#client.heartbeat({ state: "READY", leases }, { headers: this.#headers });
    for (const { status } of response.leases) if (status !== "OK") throw new Error(`A lease is ${status}.`);
  }

  /** Completes executions successfully. Throws an Error if the platform rejects a completion. */
  async complete(owned: readonly OwnedLease[]): Promise<void> {
    const completions = owned.map(({ executionId, attempt }) => ({ executionId, attempt, outcome: "DONE" }));
    const { results } = await this.#client.complete({ completions }, { headers: this.#headers });
    for (const { error } of results) if (error !== "") throw new Error(`The platform refused a completion: ${error}`);
  }

  /** Appends events to a run; `from` is the first client sequence number. */
  async append({ executionId, attempt }: OwnedLease, from: number, count: number): Promise<void> {
    const events = Array.from({ length: count }, (_, n) => ({
      clientSeq: BigInt(from + n),
      kind: "model_step",
      payload: { step_id: `s${from + n}`, text: STEP_TEXT },
    }));
    const { results } = await this.#client.appendEvents(
      { batches: [{ executionId, attempt, events }] },
      { headers: this.#headers },
    );
    if (results[0]?.error !== "") throw new Error(`The platform refused events: ${results[0]?.error}`);
  }
}

export const STEP_TEXT =
  "I read the file and found the place where the greeting is made; next I change it and run the tests.";
