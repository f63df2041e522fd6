import http from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { Code, ConnectError, type ConnectRouter, type Transport } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { serviceCaller, type Caller } from "@millwright/caller";
import { events, worker } from "@millwright/contracts";
import { DomainError, notFound } from "@millwright/errors";
import { inScope, inSpan, Metrics, type Scope } from "@millwright/telemetry";
import { aCaller, domainError, memoryLog, memoryTracer } from "@millwright/testing";
import {
  allowServices,
  call,
  callerOf,
  CallerSigner,
  CallerVerifier,
  clientFor,
  http1Transport,
  inProcess,
  mountHttp1,
  upstreamTransport,
  requestContextOf,
  serveHttp2,
  type ServerOptions,
} from "../src/index.ts";

const signer = await CallerSigner.create("gateway");
const log = memoryLog();
const metrics = new Metrics();
const tracer = memoryTracer();
/** The metadata of the caller. */
const SCOPE: Scope = {
  trace: { traceId: "a".repeat(32), spanId: "b".repeat(16), isSampled: true },
  tracer,
  fields: {},
};
const options: ServerOptions = {
  service: "orchestrator",
  verifier: new CallerVerifier([signer.jwk]),
  log,
  metrics,
  tracer,
  allow: allowServices(events.EventFeedService, { read: ["gateway"] }),
};

/** The next behaviour of the implementation of Read; set by each test. */
let read: (caller: Caller, signal: AbortSignal) => Promise<Partial<{ logUid: string }>>;
let streamEnded = false;

const routes = (router: ConnectRouter) => {
  router.service(events.EventFeedService, { read: (_request, context) => read(callerOf(context), context.signal) });
  router.service(worker.WorkerService, {
    complete: (_request, context) =>
      inSpan("implementation", {}, async () => {
        const { displayName } = callerOf(context).principal;
        if (displayName === "unlucky") throw notFound("session");
        if (displayName === "broken") throw new Error("hunter2");
        return {};
      }),
    async *subscribe(_request, context) {
      try {
        yield { workAvailable: true };
        if (callerOf(context).principal.displayName === "unlucky") throw notFound("session");
        yield { workAvailable: false };
      } finally {
        streamEnded = true;
      }
    },
  });
};

/** Resolves when a call is aborted, also if that was before its implementation began. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });

const servers: [string, () => Promise<{ transport: Transport; close: () => Promise<void> }>][] = [
  ["in process", () => Promise.resolve({ transport: inProcess(routes, options), close: () => Promise.resolve() })],
  [
    "over HTTP/2",
    async () => {
      const server = await serveHttp2(routes, options, { port: 0 });
      return { transport: upstreamTransport([`http://127.0.0.1:${server.port}`]), close: () => server.close() };
    },
  ],
  [
    "over HTTP/1.1 below a prefix",
    async () => {
      const server = http.createServer(mountHttp1(routes, options, "/rpc"));
      await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
      const close = () => new Promise<void>((resolve) => (server.close(() => resolve()), server.closeAllConnections()));
      return { transport: http1Transport(`http://127.0.0.1:${(server.address() as AddressInfo).port}/rpc`), close };
    },
  ],
];

describe.each(servers)("a call %s", (_name, open) => {
  let server: Awaited<ReturnType<typeof open>>;
  const feed = () => clientFor(events.EventFeedService, server.transport, { signer });
  const workers = () => clientFor(worker.WorkerService, server.transport, { signer });
  beforeEach(async () => {
    server = await open();
    log.entries.length = 0;
    tracer.spans.length = 0;
    streamEnded = false;
    read = () => Promise.resolve({ logUid: "log-1" });
  });
  afterEach(() => server.close());

  test("passes the complete caller to the implementation, and returns its response", async () => {
    const caller = aCaller({ principal: { type: "agent", uid: "a1" } });
    let seen: Caller | undefined;
    read = (who) => Promise.resolve(((seen = who), { logUid: "log-1" }));
    expect((await feed().read({}, call(caller))).logUid).toBe("log-1");
    expect(seen).toEqual(caller);
  });

  test("returns everything public of an error, and nothing of its cause", async () => {
    const error = new DomainError({
      kind: "unsupported",
      reason: "attachment_stale",
      message: "Prepare it again.",
      code: "unknown_attachment",
      retryable: true,
      metadata: { runUid: "r1" },
      retryAfterSeconds: 3,
      details: [{ path: "a.yaml", line: 2 }],
      cause: new Error("hunter2"),
    });
    read = () => Promise.reject(error);
    const thrown = await feed()
      .read({}, call(aCaller()))
      .catch((e: unknown) => e);
    const { kind, reason, message, code, retryable, metadata, retryAfterSeconds, details } = error;
    expect(thrown).toMatchObject({
      name: "DomainError",
      kind,
      reason,
      message,
      code,
      retryable,
      metadata,
      retryAfterSeconds,
      details,
    });
    expect(inspect(thrown, { depth: 10, showHidden: true })).not.toContain("hunter2");
  });

  test.each([
    ["an unexpected error", new Error("hunter2")],
    ["an upstream's ConnectError", new ConnectError("hunter2", Code.NotFound)],
    ["something that is no error", "hunter2"],
  ])("hides %s, and logs it once", async (_what, thrown) => {
    // oxlint-disable-next-line prefer-promise-reject-errors -- that is the case
    read = () => Promise.reject(thrown);
    const error = await feed()
      .read({}, call(aCaller()))
      .catch((e: unknown) => e);
    expect(error).toEqual(domainError({ kind: "internal", reason: "internal" }));
    expect((error as DomainError).message).not.toContain("hunter2");
    expect(log.entries.filter((entry) => entry.level === "error").map((entry) => entry.fields["error"])).toEqual([
      thrown,
    ]);
  });

  test.each([
    ["no connection is free in time", new Error("timeout exceeded when trying to connect"), "service_unavailable"],
    ["a statement takes too long", Object.assign(new Error("canceling"), { code: "57014" }), "database_busy"],
  ])("is unavailable and logs one warning with the cause if %s", async (_what, thrown, reason) => {
    read = () => Promise.reject(thrown);
    await expect(feed().read({}, call(aCaller()))).rejects.toEqual(
      domainError({ kind: "unavailable", reason, retryable: true }),
    );
    expect(log.entries.map(({ level, fields }) => [level, fields["error"]])).toEqual([["warn", thrown]]);
  });

  test("ends at its deadline as unavailable, and aborts the implementation", async () => {
    let aborted: Promise<void> | undefined;
    read = (_caller, signal) => {
      aborted = untilAborted(signal);
      return new Promise(() => {});
    };
    await expect(feed().read({}, call(aCaller(), { timeoutMs: 30 }))).rejects.toEqual(
      domainError({ kind: "unavailable", reason: "deadline_exceeded", retryable: true }),
    );
    await aborted;
  });

  test("ends when its client cancels, and aborts the implementation", async () => {
    const giving = new AbortController();
    let aborted: Promise<void> | undefined;
    read = (_caller, signal) => {
      aborted = untilAborted(signal);
      giving.abort();
      return aborted.then(() => ({}));
    };
    const error = domainError({ kind: "unavailable", reason: "call_cancelled" });
    await expect(feed().read({}, call(aCaller(), { signal: giving.signal }))).rejects.toEqual(error);
    await aborted;
    await expect(feed().read({}, call(aCaller(), { signal: giving.signal }))).rejects.toEqual(error);
  });

  test("is rejected without a caller, with a forged one, or in the name of another service", async () => {
    const forger = await CallerSigner.create("gateway");
    const readAs = (by: CallerSigner, caller: Caller) =>
      clientFor(events.EventFeedService, server.transport, { signer: by }).read({}, call(caller));
    await expect(clientFor(events.EventFeedService, server.transport).read({})).rejects.toEqual(
      domainError({ kind: "unauthenticated", reason: "caller_missing" }),
    );
    await expect(readAs(forger, aCaller())).rejects.toEqual(
      domainError({ kind: "unauthenticated", reason: "caller_invalid" }),
    );
    await expect(readAs(signer, serviceCaller("scoring", "r1"))).rejects.toEqual(
      domainError({ reason: "caller_invalid" }),
    );
  });

  test("in a service's own name requires an entry in the table", async () => {
    await expect(feed().read({}, call(serviceCaller("gateway", "r1")))).resolves.toMatchObject({ logUid: "log-1" });
    await expect(workers().heartbeat({}, call(serviceCaller("gateway", "r1")))).rejects.toEqual(
      domainError({ kind: "permission_denied", reason: "service_not_allowed" }),
    );
  });

  test("is logged in one line without its content; a poll at debug level", async () => {
    await inScope(SCOPE, () =>
      workers().complete({ completions: [{ executionId: 424_242n }] }, call(aCaller({ requestId: "req-1" }))),
    );
    await inScope(SCOPE, () => feed().read({ limit: 424_242 }, call(aCaller({ requestId: "req-2" }))));
    const lineOf = (level: string, requestId: string, operation: string) => ({
      level,
      message: "rpc finished",
      fields: expect.objectContaining({ requestId, traceId: "a".repeat(32), operation, outcome: "ok" }),
    });
    expect(log.entries).toEqual([
      lineOf("info", "req-1", "millwright.worker.v1.WorkerService/Complete"),
      lineOf("debug", "req-2", "millwright.events.v1.EventFeedService/Read"),
    ]);
    expect(JSON.stringify(log.entries)).not.toContain("424242");
  });

  test("is a span below the caller's, and the parent of the implementation's own spans", async () => {
    await inScope(SCOPE, () => workers().complete({}, call(aCaller())));
    const [client, serverSpan, implementation] = tracer.spans;
    const name = "millwright.worker.v1.WorkerService/Complete";
    expect(tracer.spans).toMatchObject([
      { name, kind: "client", parent: SCOPE.trace, isEnded: true },
      {
        name,
        kind: "server",
        parent: client!.context,
        isEnded: true,
        attributes: { "rpc.method": name, "rpc.status_code": "OK" },
      },
      { name: "implementation", parent: serverSpan!.context },
    ]);
    expect(implementation!.context.traceId).toBe(SCOPE.trace.traceId);
    expect(log.entries.at(-1)?.fields).toMatchObject({
      traceId: SCOPE.trace.traceId,
      spanId: serverSpan!.context.spanId,
    });
  });

  test("that is rejected does not fail the server's span; an internal error does, without its text", async () => {
    const complete = (displayName: string) =>
      workers()
        .complete({}, call(aCaller({ principal: { type: "user", uid: "u", displayName } })))
        .catch(() => {});
    await complete("unlucky");
    await complete("broken");
    const [refused, broken] = tracer.spans.filter(({ kind }) => kind === "server");
    expect(refused).toMatchObject({
      attributes: { "rpc.status_code": "NOT_FOUND", "error.type": "session_not_found" },
    });
    expect(refused).not.toHaveProperty("error");
    expect(broken).toMatchObject({ error: "internal", attributes: { "rpc.status_code": "INTERNAL" } });
    expect(JSON.stringify(tracer.spans)).not.toContain("hunter2");
  });

  test("of a polled method has no span, and passes the trace on", async () => {
    await inScope(SCOPE, () => feed().read({}, call(aCaller())));
    expect(tracer.spans.map(({ kind }) => kind)).toEqual(["client"]);
    expect(log.entries.at(-1)?.fields).toMatchObject({ traceId: SCOPE.trace.traceId });
  });

  test("may stream; an error after the first message is returned as our error", async () => {
    const subscribe = async (displayName: string) => {
      const seen: boolean[] = [];
      const stream = clientFor(worker.WorkerService, server.transport, { signer }).subscribe(
        {},
        call(aCaller({ principal: { type: "worker", uid: "w", displayName } })),
      );
      try {
        for await (const message of stream) seen.push(message.workAvailable);
        return { seen };
      } catch (error) {
        return { seen, error };
      }
    };
    expect(await subscribe("lucky")).toEqual({ seen: [true, false] });
    expect(await subscribe("unlucky")).toEqual({ seen: [true], error: domainError({ reason: "session_not_found" }) });
    expect(streamEnded).toBe(true);
    expect(log.entries.map((entry) => entry.fields["outcome"])).toEqual(["ok", "not_found"]);
  });
});

test("a stopping server aborts running calls, and then accepts no more", async () => {
  const server = await serveHttp2(routes, options, { port: 0 });
  const feed = clientFor(events.EventFeedService, upstreamTransport([`http://127.0.0.1:${server.port}`]), { signer });
  let started = () => {};
  const running = new Promise<void>((resolve) => (started = resolve));
  read = (_caller, signal) => {
    started();
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  };
  const answer = feed.read({}, call(aCaller())).catch((error: unknown) => error);
  await running;
  await server.close();
  expect(await answer).toEqual(domainError({ kind: "unavailable" }));
  await expect(feed.read({}, call(aCaller()))).rejects.toEqual(domainError({ kind: "unavailable" }));
});

test("nothing is printed when a reader leaves an open stream", async () => {
  const printed: unknown[] = [];
  const { error: print } = console;
  console.error = (...what: unknown[]) => void printed.push(what);
  let hasLeft = (): void => {};
  const left = new Promise<void>((resolve) => (hasLeft = resolve));
  const endless = (router: ConnectRouter) =>
    void router.service(worker.WorkerService, {
      complete: (_request, context) =>
        inSpan("implementation", {}, async () => {
          const { displayName } = callerOf(context).principal;
          if (displayName === "unlucky") throw notFound("session");
          if (displayName === "broken") throw new Error("hunter2");
          return {};
        }),
      async *subscribe(_request, { signal }) {
        yield {};
        await untilAborted(signal);
        hasLeft();
        yield {};
      },
    });
  const server = http.createServer(
    mountHttp1(endless, { ...options, verifier: { authenticate: () => Promise.resolve(undefined) } }, "/rpc"),
  );
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  try {
    const transport = http1Transport(`http://127.0.0.1:${(server.address() as AddressInfo).port}/rpc`);
    const leaving = new AbortController();
    const reading = (async () => {
      for await (const _ of clientFor(worker.WorkerService, transport).subscribe({}, { signal: leaving.signal }))
        leaving.abort();
    })();
    await reading.catch(() => {}); // truncated by the client
    await left;
    await new Promise<void>((resolve) => (server.close(() => resolve()), server.closeAllConnections()));
    await new Promise((resolve) => setImmediate(resolve));
    expect(printed).toEqual([]);
  } finally {
    console.error = print;
  }
});

// Node's errors for a request body whose connection closes before its end, and for a response to a destroyed stream.
test.each([
  ["Premature close", "ERR_STREAM_PREMATURE_CLOSE"],
  ["The stream has been destroyed", "ERR_HTTP2_INVALID_STREAM"],
])("a call whose client dies in the middle is not logged as a failure: %s", async (message, code) => {
  const before = log.entries.length;
  read = () => Promise.reject(Object.assign(new Error(message), { code }));
  const feed = clientFor(events.EventFeedService, inProcess(routes, options), { signer });
  await expect(feed.read({}, call(aCaller()))).rejects.toEqual(domainError({ kind: "unavailable" }));
  expect(log.entries.slice(before).map(({ level, fields }) => [level, fields.outcome])).toEqual([["info", "canceled"]]);
});

test("a call to an absent server is unavailable", async () => {
  const absent = clientFor(events.EventFeedService, upstreamTransport(["http://127.0.0.1:1"]), { signer });
  await expect(absent.read({}, call(aCaller()))).rejects.toEqual(domainError({ kind: "unavailable", retryable: true }));
});

test("a server may authenticate callers by other means than signed tokens", async () => {
  const session = {
    authenticate: (header: Headers) =>
      Promise.resolve(header.get("authorization") === "Bearer s1" ? aCaller() : undefined),
  };
  const server = inProcess(
    (router) =>
      router.service(events.EventFeedService, {
        read: (_request, context) => ({ logUid: requestContextOf(context).caller ? "known" : "anonymous" }),
      }),
    { ...options, verifier: session },
  );
  const feed = clientFor(events.EventFeedService, server);
  expect((await feed.read({}, { headers: { authorization: "Bearer s1" } })).logUid).toBe("known");
  expect((await feed.read({})).logUid).toBe("anonymous");
});

test("polled methods are logged at debug level while they succeed", async () => {
  log.entries.length = 0;
  const quiet = { ...options, quiet: ["millwright.events.v1.EventFeedService/Read"] };
  const feed = clientFor(events.EventFeedService, inProcess(routes, quiet), { signer });
  read = () => Promise.resolve({});
  await feed.read({}, call(aCaller()));
  read = () => Promise.reject(notFound("log"));
  await expect(feed.read({}, call(aCaller()))).rejects.toEqual(domainError({ reason: "log_not_found" }));
  expect(log.entries.map((entry) => entry.level)).toEqual(["debug", "info"]);
});

test("finished calls are counted by method and outcome", async () => {
  expect(await metrics.text()).toMatch(
    /millwright_rpc_requests_total\{service="orchestrator",method="millwright.events.v1.EventFeedService\/Read",outcome="ok"\} \d+/,
  );
});
