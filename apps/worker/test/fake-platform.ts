import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { rpc, worker } from "@millwright/contracts";

export type FakeEvent = { clientSeq: bigint; kind: string; payload: JsonObject };
type Method =
  | "returnLeases"
  | "lease"
  | "dispatch"
  | "failDispatch"
  | "accept"
  | "heartbeat"
  | "appendEvents"
  | "complete"
  | "register"
  | "createArtifact";
type Attempt = {
  assignment: worker.Assignment;
  state: "offered" | "accepted" | "lost" | "stopped" | "ended";
  events: FakeEvent[];
  completions: worker.Completion[];
  directives: worker.Directive[];
  /** The leases in the heartbeats of this attempt. */
  heartbeats: worker.HeldLease[];
  /** Set for a dispatched execution: its offer token, and the process that presented the token. */
  offerToken?: string;
  holder?: string;
};

export const WORKER_KEY = "mww_test";

/** The platform's side of the worker protocol, in memory, over real HTTP/1.1. */
export class FakePlatform {
  url = "";
  readonly attempts = new Map<string, Attempt>();
  readonly registrations: worker.RegisterRequest[] = [];
  readonly calls: string[] = [];
  readonly declined: worker.DeclineRequest[] = [];
  readonly returned: worker.ReturnedLease[] = [];
  readonly leaseRequests: worker.LeaseRequest[] = [];
  readonly heartbeats: worker.HeartbeatRequest[] = [];
  readonly failedDispatches: worker.FailDispatchRequest[] = [];
  readonly requests: {
    method: string;
    url: string;
    authorization: string | undefined;
    signed?: string | string[] | undefined;
    body: string;
  }[] = [];
  timings = { heartbeatMs: 100, leaseTtlMs: 60_000, offerTtlMs: 30_000, outboundGateCloseMs: 60_000 };
  /** Whether the directive stream delivers anything. */
  isStreamAlive = true;
  validToken = "session-1";
  /** The responses to the next REST requests; 200 {} when empty. */
  restResponses: { status: number; body: JsonObject }[] = [];
  runToken = "";
  /** Earlier events, for ReadHistory. */
  history: { kind: string; payload?: JsonObject; runUid?: string; executionId?: bigint }[] = [];
  /** Called before each call is handled. */
  onCall: (method: Method) => void = () => {};
  #faults: { method: Method; when: "before" | "after"; error: ConnectError }[] = [];
  #streams = new Set<(directive: worker.Directive) => void>();
  #wakes = new Set<() => void>();
  #server: Server | undefined;
  #isDown = false;
  #sessions = 0;
  /** The valid tokens of all processes; several processes may be connected. */
  readonly #tokens = new Set<string>();
  /** The process that registered with each token. */
  readonly #instances = new Map<string, string>();

  async start(): Promise<this> {
    const router = createConnectRouter().service(worker.WorkerService, this.#service());
    const handlers = new Map(router.handlers.map((handler) => [`/rpc${handler.requestPath}`, handler]));
    this.#server = createServer((request, response) => {
      const handler = handlers.get(request.url ?? "");
      if (this.#isDown) request.socket.destroy();
      else if (handler) void serveRpc(handler, request, response);
      else void this.#serveRest(request, response);
    });
    await new Promise<void>((resolve) => this.#server?.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  /** Closes every connection and refuses new ones, or accepts connections again. */
  setDown(isDown: boolean): void {
    this.#isDown = isDown;
    if (isDown) this.#server?.closeAllConnections();
  }

  /** Makes the next call of `method` fail: before it has any effect, or after it is complete (its response is lost). */
  failNext(
    method: Method,
    when: "before" | "after",
    error: ConnectError = new ConnectError("away", Code.Unavailable),
  ): void {
    this.#faults.push({ method, when, error });
  }

  offer(executionId: bigint, more: Partial<Omit<worker.Assignment, "$typeName">> = {}, attempt = 1): Attempt {
    const { $typeName: _, ...fields } = create(worker.AssignmentSchema);
    const assignment = create(worker.AssignmentSchema, {
      ...fields,
      executionId,
      attempt,
      runUid: `run-${executionId}`,
      runToken: "mwr_token-1",
      ...more,
    });
    const entry: Attempt = {
      assignment,
      state: "offered",
      events: [],
      completions: [],
      directives: [],
      heartbeats: [],
    };
    this.attempts.set(keyOf({ executionId, attempt }), entry);
    for (const wake of this.#wakes) wake();
    return entry;
  }

  direct(executionId: bigint, seq: bigint, directive: worker.Directive["directive"], attempt = 1): void {
    const directives = this.attempts.get(keyOf({ executionId, attempt }))?.directives ?? [];
    const message = create(worker.DirectiveSchema, {
      seq,
      executionId,
      attempt,
      directive,
      previousSeq: directives.at(-1)?.seq ?? 0n,
    });
    directives.push(message);
    if (this.isStreamAlive) for (const push of this.#streams) push(message);
  }

  /** Adds an execution that was dispatched. Returns it with its offer token. */
  dispatched(executionId: bigint, more: Partial<worker.Assignment> = {}): Attempt & { offerToken: string } {
    const entry = this.offer(executionId, more);
    return Object.assign(entry, { state: "accepted" as const, offerToken: offerTokenOf(entry.assignment) });
  }

  invalidateSession(): void {
    this.validToken = "none";
    this.#tokens.clear();
  }

  #service() {
    return {
      register: this.#faulty("register", (request: worker.RegisterRequest, context: HandlerContext) => {
        const key = context.requestHeader.get("authorization")?.slice("Bearer ".length) ?? "";
        if (key.startsWith("mwo_")) this.takeOffer(key, request.instanceUid);
        else if (key !== WORKER_KEY) throw refusal("unauthenticated", "key_invalid", Code.Unauthenticated);
        this.registrations.push(request);
        this.validToken = `session-${++this.#sessions}`;
        this.#tokens.add(this.validToken);
        this.#instances.set(this.validToken, request.instanceUid);
        return { ...this.timings, sessionToken: this.validToken, publicUrl: "https://public.example" };
      }),
      subscribe: (_: worker.SubscribeRequest, context: HandlerContext) => this.#subscribe(context),
      lease: this.#faulty("lease", async (request: worker.LeaseRequest, context: HandlerContext) => {
        this.leaseRequests.push(request);
        const open = () =>
          [...this.attempts.values()].filter(({ state }) => state === "offered").slice(0, request.freeSlots);
        if (open().length === 0) await this.#untilWoken(context.signal);
        return {
          offers: open().map(({ assignment: { executionId, attempt } }) => ({
            executionId,
            attempt,
            offerExpiresAt: timestampFromMs(0),
          })),
        };
      }),
      accept: this.#faulty("accept", ({ leases }: worker.AcceptRequest) => {
        const entries = leases.flatMap((lease) => this.attempts.get(keyOf(lease)) ?? []);
        for (const entry of entries) if (entry.state === "offered") entry.state = "accepted";
        return {
          assignments: entries.filter(({ state }) => state === "accepted").map(({ assignment }) => assignment),
          lost: entries
            .filter(({ state }) => state !== "accepted")
            .map(({ assignment: { executionId, attempt } }) => ({ executionId, attempt })),
        };
      }),
      dispatch: this.#faulty("dispatch", ({ leases }: worker.DispatchRequest) => {
        const entries = leases
          .flatMap((lease) => this.attempts.get(keyOf(lease)) ?? [])
          .filter(({ state, holder }) => (state === "offered" || state === "accepted") && holder === undefined);
        for (const entry of entries)
          Object.assign(entry, { state: "accepted", offerToken: offerTokenOf(entry.assignment) });
        return {
          executions: entries.map(
            ({ assignment: { executionId, attempt, runUid, dockerImage, instanceShape }, offerToken = "" }) => ({
              executionId,
              attempt,
              runUid,
              offerToken,
              dockerImage,
              harness: "oz",
              instanceShape,
            }),
          ),
          lost: leases.filter((lease) => !entries.some(({ assignment }) => keyOf(assignment) === keyOf(lease))),
        };
      }),
      failDispatch: this.#faulty("failDispatch", (request: worker.FailDispatchRequest) => {
        this.failedDispatches.push(request);
        const entry = this.attempts.get(keyOf(request));
        if (entry?.holder !== undefined && !request.taken) return { taken: true };
        if (entry) entry.state = "lost";
        return {};
      }),
      decline: (request: worker.DeclineRequest) => {
        this.declined.push(request);
        return {};
      },
      returnLeases: this.#faulty("returnLeases", ({ leases }: worker.ReturnLeasesRequest, context: HandlerContext) => {
        const instance = this.#instances.get(tokenOf(context));
        const own = leases.filter((lease) => {
          const entry = this.attempts.get(keyOf(lease));
          return (
            entry !== undefined &&
            entry.state !== "lost" &&
            entry.state !== "ended" &&
            (entry.holder ?? instance) === instance
          );
        });
        this.returned.push(...own);
        for (const lease of own) this.attempts.get(keyOf(lease))!.state = "lost";
        return { returned: own.map(({ executionId, attempt }) => ({ executionId, attempt })) };
      }),
      heartbeat: this.#faulty("heartbeat", (request: worker.HeartbeatRequest) => {
        this.heartbeats.push(request);
        const known = request.leases.map((lease) => ({ lease, entry: this.attempts.get(keyOf(lease)) }));
        for (const { lease, entry } of known) entry?.heartbeats.push(lease);
        const STATUS = { offered: "LOST", accepted: "OK", lost: "LOST", stopped: "STOP", ended: "LOST" } as const;
        return {
          leases: known.map(({ lease: { executionId, attempt }, entry }) => ({
            executionId,
            attempt,
            status: entry ? STATUS[entry.state] : "LOST",
            runToken: this.runToken,
          })),
          watched: request.watched.map(({ executionId, attempt }) => ({
            executionId,
            attempt,
            ...this.#statusOf(keyOf({ executionId, attempt })),
          })),
          directives: known.flatMap(
            ({ lease, entry }) => entry?.directives.filter(({ seq }) => seq > lease.ackedDirectiveSeq) ?? [],
          ),
        };
      }),
      appendEvents: this.#faulty("appendEvents", ({ batches }: worker.AppendEventsRequest) => ({
        results: batches.map((batch) => this.#append(batch)),
      })),
      complete: this.#faulty("complete", ({ completions }: worker.CompleteRequest) => ({
        results: completions.map((completion) => this.#complete(completion)),
      })),
      createArtifact: this.#faulty("createArtifact", (request: worker.CreateArtifactRequest) => ({
        artifactUid: `uid-of-${request.clientArtifactId}`,
        ...(request.content
          ? {}
          : {
              uploadUrl: `${this.url}/blobs/${request.clientArtifactId}`,
              uploadHeaders: { "x-signed": request.sha256 },
            }),
      })),
      commitArtifact: () => {
        this.calls.push("commitArtifact");
        return {};
      },
      reportUsage: () => ({}),
      putSnapshot: ({ sha256 }: worker.PutSnapshotRequest) => {
        this.calls.push("putSnapshot");
        return {
          uploadUrl: `${this.url}/blobs/snapshot`,
          uploadHeaders: { "x-signed": sha256 },
          snapshotKey: "snap-1",
        };
      },
      putTranscript: ({ sha256 }: worker.PutTranscriptRequest) => ({
        uploadUrl: `${this.url}/blobs/transcript`,
        uploadHeaders: { "x-signed": sha256 },
      }),
      // One event per page, so that the worker must read several pages.
      readHistory: ({ pageToken }: worker.ReadHistoryRequest) => {
        const at = Number(pageToken);
        const nextPageToken = at + 1 < this.history.length ? String(at + 1) : "";
        return {
          events: this.history.slice(at, at + 1).map((event) => ({ ...event, seq: BigInt(at + 1) })),
          hasMore: nextPageToken !== "",
          nextPageToken,
        };
      },
    };
  }

  /** Registers an offer token that a worker process presents. */
  takeOffer(token: string, instanceUid: string): void {
    const entry = [...this.attempts.values()].find(({ offerToken }) => offerToken === token);
    if (entry?.state !== "accepted" || (entry.holder !== undefined && entry.holder !== instanceUid))
      throw refusal("unauthenticated", "offer_gone", Code.Unauthenticated);
    entry.holder = instanceUid;
  }

  #statusOf(key: string): { status: string; stopping: boolean } {
    const entry = this.attempts.get(key);
    if (!entry || entry.state === "lost" || entry.state === "offered") return { status: "LOST", stopping: false };
    if (entry.state === "ended") return { status: "ENDED", stopping: false };
    return { status: entry.holder === undefined ? "WAITING" : "TAKEN", stopping: entry.state === "stopped" };
  }

  #append({ executionId, attempt, events }: worker.EventBatch) {
    const entry = this.attempts.get(keyOf({ executionId, attempt }));
    if (!entry || (entry.state !== "accepted" && entry.state !== "stopped"))
      return { executionId, attempt, error: "LEASE_LOST" };
    for (const { clientSeq, kind, payload } of events) {
      const expected = BigInt(entry.events.length) + 1n;
      if (clientSeq > expected) return { executionId, attempt, ackedClientSeq: expected - 1n, error: "SEQUENCE_GAP" };
      if (clientSeq === expected) entry.events.push({ clientSeq, kind, payload: payload ?? {} });
    }
    return { executionId, attempt, ackedClientSeq: BigInt(entry.events.length) };
  }

  #complete(completion: worker.Completion) {
    const { executionId, attempt } = completion;
    const entry = this.attempts.get(keyOf(completion));
    if (!entry || entry.state === "lost") return { executionId, attempt, error: "LEASE_LOST" };
    if (completion.lastClientSeq > entry.events.length)
      return { executionId, attempt, error: "EVENTS_PENDING", ackedClientSeq: BigInt(entry.events.length) };
    entry.completions.push(completion);
    entry.state = "ended";
    return { executionId, attempt };
  }

  async #serveRest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await request.toArray()).map((chunk: Buffer) => chunk.toString("latin1")).join("");
    this.requests.push({
      method: request.method ?? "",
      url: request.url ?? "",
      authorization: request.headers.authorization,
      signed: request.headers["x-signed"],
      body,
    });
    const planned = this.restResponses.shift() ?? { status: 200, body: {} };
    response.writeHead(planned.status, { "content-type": "application/json" }).end(JSON.stringify(planned.body));
  }

  async *#subscribe(context: HandlerContext) {
    this.#checkSession(context);
    const queue: worker.Directive[] = [];
    let wake = (): void => {};
    const push = (directive: worker.Directive): void => {
      queue.push(directive);
      wake();
    };
    this.#streams.add(push);
    context.signal.addEventListener("abort", () => wake());
    try {
      yield {};
      for (;;) {
        const directives = queue.splice(0);
        if (directives.length > 0) yield { directives };
        else await new Promise<void>((resolve) => (wake = resolve));
        if (context.signal.aborted) return;
      }
    } finally {
      this.#streams.delete(push);
    }
  }

  #faulty<I, O>(method: Method, handle: (request: I, context: HandlerContext) => O | Promise<O>) {
    return async (request: I, context: HandlerContext): Promise<O> => {
      this.calls.push(method);
      this.onCall(method);
      if (method !== "register") this.#checkSession(context);
      const before = this.#takeFault(method, "before");
      if (before) throw before;
      const result = await handle(request, context);
      const after = this.#takeFault(method, "after");
      if (after) throw after;
      return result;
    };
  }

  #takeFault(method: Method, when: "before" | "after"): ConnectError | undefined {
    const index = this.#faults.findIndex((fault) => fault.method === method && fault.when === when);
    return index < 0 ? undefined : this.#faults.splice(index, 1)[0]?.error;
  }

  #checkSession(context: HandlerContext): void {
    const token = tokenOf(context);
    if (this.validToken === "none" || !this.#tokens.has(token))
      throw refusal("unauthenticated", "session_invalid", Code.Unauthenticated);
  }

  #untilWoken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#wakes.delete(wake);
        resolve();
      };
      this.#wakes.add(wake);
      signal.addEventListener("abort", wake);
    });
  }
}

/** Serves a request. Connect's own adapter logs an error when a client disconnects, which clients do in these tests. */
async function serveRpc(handler: UniversalHandler, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    await universalResponseToNodeResponse(
      await handler(universalRequestFromNodeRequest(request, response, undefined, undefined)),
      response,
    );
  } catch {
    response.destroy();
  }
}

/** Returns an error as the platform sends it: its meaning is in the detail, not in the code. */
export const refusal = (kind: string, reason: string, code: Code, retryable = false): ConnectError =>
  new ConnectError(reason, code, undefined, [
    { desc: rpc.ErrorDetailSchema, value: { kind, reason, retryable, message: reason } },
  ]);

const tokenOf = (context: HandlerContext): string =>
  context.requestHeader.get("authorization")?.slice("Bearer ".length) ?? "";

const offerTokenOf = ({ executionId, attempt }: { executionId: bigint; attempt: number }): string =>
  `mwo_${executionId}_${attempt}_${"x".repeat(43)}`;

const keyOf = ({ executionId, attempt }: { executionId: bigint; attempt: number }): string =>
  `${executionId}-${attempt}`;
