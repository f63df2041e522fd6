import { randomUUID } from "node:crypto";
import { eventually } from "@millwright/testing";
import type { Client } from "./client.ts";
import { sendRequest, sendWithRetries } from "./requests.ts";
import { teamOf } from "./resources.ts";

export type Lease = { readonly executionId: string; readonly attempt: number };
export type Assignment = Lease & {
  readonly runUid: string;
  readonly runToken: string;
  readonly executionSeq: number;
  readonly inputs: readonly { uid: string; text: string; kind: string }[];
};

type Platform = Pick<Client, "url" | "hasChaos">;

/** A worker controlled by the test. It uses the same API as real workers and can keep a run in any state. */
export class TestWorker {
  readonly #platform: Platform;
  /** The worker key used for registration; `token` authenticates all later calls. */
  readonly key: string;
  readonly token: string;

  private constructor(platform: Platform, key: string, token: string) {
    this.#platform = platform;
    this.key = key;
    this.token = token;
  }

  /** Registers a worker in the client's team. */
  static async register(api: Client, workerId = "by-hand", harnesses = ["oz"]): Promise<TestWorker> {
    const { api_key: key } = await api.post(`/team/${await teamOf(api)}/keys`, { name: workerId, kind: "worker" });
    const request = {
      workerId,
      instanceUid: randomUUID(),
      version: "1.0.0",
      slots: 50,
      harnesses: harnesses.map((type) => ({ type, version: "1" })),
      sandbox: "bwrap",
    };
    const { sessionToken } = await rpc(api, key, "Register", request);
    return new TestWorker(api, key, sessionToken);
  }

  /** Calls a method of the worker service with JSON. Throws with the error code and the response. */
  call(method: string, request: object): Promise<any> {
    return rpc(this.#platform, this.token, method, request);
  }

  /** Waits for the next offer. Its run is PENDING. */
  offer(): Promise<Lease> {
    return eventually(async () => (await this.call("Lease", { freeSlots: 1, waitMs: 1_000 })).offers?.[0] ?? false);
  }

  /** Declines an offer; its run returns to QUEUED. An offer that has expired is ignored. */
  decline(lease: Lease): Promise<unknown> {
    return this.call("Decline", { leases: [only(lease)], reason: "by hand" });
  }

  /** Accepts an offer; its run becomes CLAIMED. Returns undefined if the offer has expired. */
  async accept(lease: Lease): Promise<Assignment | undefined> {
    const [assignment] = (await this.call("Accept", { leases: [lease] })).assignments ?? [];
    return assignment && { inputs: [], ...assignment }; // JSON omits empty fields.
  }

  /** Appends one event; `clientSeq` starts at 1 in each attempt. Returns the error code, or "". */
  async append(lease: Lease, clientSeq: number, kind: string, payload: object = {}): Promise<string> {
    const events = [{ clientSeq: String(clientSeq), at: new Date().toISOString(), kind, payload }];
    return (await this.call("AppendEvents", { batches: [{ ...only(lease), events }] })).results[0].error ?? "";
  }

  /**
   * Reports that the agent has started and received its inputs. After a lost attempt there are no inputs if that
   * attempt had received them. The run becomes INPROGRESS.
   */
  async start(assignment: Assignment): Promise<void> {
    await this.append(assignment, 1, "agent_started", { session_id: randomUUID() });
    for (const [index, { uid, text, kind }] of assignment.inputs.entries())
      await this.append(assignment, index + 2, "message", { role: "user", text, kind, message_uid: uid });
  }

  complete(lease: Lease, outcome: string, more: object = {}): Promise<any> {
    return this.call("Complete", { completions: [{ ...only(lease), outcome, lastClientSeq: "1", ...more }] });
  }

  /** Sends a heartbeat without leases. A worker that sends none for a while counts as disconnected. */
  async reportConnected(): Promise<void> {
    await this.call("Heartbeat", { state: "READY", freeSlots: 10, leases: [] });
  }

  /** Renews one lease. Returns its status and the platform's directives for it. */
  async heartbeat(lease: Lease): Promise<{ status: string; directives: any[] }> {
    const answer = await this.call("Heartbeat", {
      state: "READY",
      freeSlots: 10,
      leases: [{ ...only(lease), phase: "RUNNING" }],
    });
    const isOfLease = (one: { executionId: string }) => one.executionId === lease.executionId;
    return {
      status: answer.leases?.find(isOfLease)?.status ?? "",
      directives: (answer.directives ?? []).filter(isOfLease),
    };
  }
}

const only = ({ executionId, attempt }: Lease): Lease => ({ executionId, attempt });

/**
 * Calls a method of the worker service. If processes of the platform are killed, it retries like a real worker: when
 * there is no response or the platform is unavailable.
 */
async function rpc({ url, hasChaos }: Platform, token: string, method: string, request: object): Promise<any> {
  const send = () =>
    sendRequest(`${url}/rpc/millwright.worker.v1.WorkerService/${method}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "connect-protocol-version": "1",
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify(request),
    });
  const { status, text } = await (hasChaos ? sendWithRetries(send, ({ status: code }) => code === 503) : send());
  const answer: any = JSON.parse(text);
  if (status >= 300) throw new Error(`${method}: ${status} ${JSON.stringify(answer)}`);
  return answer;
}
