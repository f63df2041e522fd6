import { randomUUID } from "node:crypto";
import { eventually } from "@millwright/testing";
import type { Client } from "./client.ts";
import { ask, patiently } from "./patient.ts";
import { teamOf } from "./world.ts";

export type Lease = { readonly executionId: string; readonly attempt: number };
export type Assignment = Lease & {
  readonly runUid: string;
  readonly runToken: string;
  readonly executionSeq: number;
  readonly inputs: readonly { uid: string; text: string; kind: string }[];
};

type Door = Pick<Client, "url" | "isUnderFire">;

/** A worker moved by the test's hand, over the same door as real ones: it holds runs in any state for as long as it is wanted. */
export class HandWorker {
  readonly #door: Door;
  /** The key it came with, and what it calls with since. */
  readonly key: string;
  readonly token: string;

  private constructor(door: Door, key: string, token: string) {
    this.#door = door;
    this.key = key;
    this.token = token;
  }

  /** Connects for the client's team. */
  static async register(api: Client, workerId = "by-hand", harnesses = ["oz"]): Promise<HandWorker> {
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
    return new HandWorker(api, key, sessionToken);
  }

  /** One call of the worker service, in JSON. Errors: the code and what was answered. */
  call(method: string, request: object): Promise<any> {
    return rpc(this.#door, this.token, method, request);
  }

  /** Waits for the next offer; its run is PENDING. */
  offer(): Promise<Lease> {
    return eventually(async () => (await this.call("Lease", { freeSlots: 1, waitMs: 1_000 })).offers?.[0] ?? false);
  }

  /** Gives an offer back; its run is QUEUED again. One that is gone already is fine. */
  decline(lease: Lease): Promise<unknown> {
    return this.call("Decline", { leases: [only(lease)], reason: "by hand" });
  }

  /** Takes an offer; its run is CLAIMED. Undefined: the offer is lost. */
  async accept(lease: Lease): Promise<Assignment | undefined> {
    const [assignment] = (await this.call("Accept", { leases: [lease] })).assignments ?? [];
    return assignment && { inputs: [], ...assignment }; // JSON leaves out what is empty
  }

  /** Tells events; `their numbers begin at 1. Answers the error, or "". */
  async append(lease: Lease, clientSeq: number, kind: string, payload: object = {}): Promise<string> {
    const events = [{ clientSeq: String(clientSeq), at: new Date().toISOString(), kind, payload }];
    return (await this.call("AppendEvents", { batches: [{ ...only(lease), events }] })).results[0].error ?? "";
  }

  /** The agent starts and is given what it is asked, which is nothing after the loss of one that has heard it; the run is INPROGRESS. */
  async start(assignment: Assignment): Promise<void> {
    await this.append(assignment, 1, "agent_started", { session_id: randomUUID() });
    for (const [index, { uid, text, kind }] of assignment.inputs.entries())
      await this.append(assignment, index + 2, "message", { role: "user", text, kind, message_uid: uid });
  }

  complete(lease: Lease, outcome: string, more: object = {}): Promise<any> {
    return this.call("Complete", { completions: [{ ...only(lease), outcome, lastClientSeq: "1", ...more }] });
  }

  /** Reports that it is connected; a worker that has not for a while counts as gone. */
  async reportConnected(): Promise<void> {
    await this.call("Heartbeat", { state: "READY", freeSlots: 10, leases: [] });
  }

  /** Renews one lease: how it stands, and what the platform wants of it. */
  async heartbeat(lease: Lease): Promise<{ status: string; directives: any[] }> {
    const answer = await this.call("Heartbeat", {
      state: "READY",
      freeSlots: 10,
      leases: [{ ...only(lease), phase: "RUNNING" }],
    });
    const isOurs = (one: { executionId: string }) => one.executionId === lease.executionId;
    return { status: answer.leases?.find(isOurs)?.status ?? "", directives: (answer.directives ?? []).filter(isOurs) };
  }
}

const only = ({ executionId, attempt }: Lease): Lease => ({ executionId, attempt });

/** As real workers do, asks a platform under fire again when nobody answers, or says that the platform cannot be reached. */
async function rpc({ url, isUnderFire }: Door, token: string, method: string, request: object): Promise<any> {
  const send = () =>
    ask(`${url}/rpc/millwright.worker.v1.WorkerService/${method}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "connect-protocol-version": "1",
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify(request),
    });
  const { status, text } = await (isUnderFire ? patiently(send, ({ status: code }) => code === 503) : send());
  const answer: any = JSON.parse(text);
  if (status >= 300) throw new Error(`${method}: ${status} ${JSON.stringify(answer)}`);
  return answer;
}
