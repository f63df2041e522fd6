import { once } from "node:events";
import { readFileSync } from "node:fs";
import { constants, createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { events, factories, orchestrator, worker } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { Metrics } from "@millwright/telemetry";
import { aCaller, domainError, eventually, memoryLog } from "@millwright/testing";
import {
  call,
  CallerSigner,
  CallerVerifier,
  clientFor,
  forwardService,
  inProcess,
  upstreamTransport,
  serveHttp2,
  type Http2Listen,
  type UpstreamOptions,
  type UpstreamTransport,
} from "../src/index.ts";

const signer = await CallerSigner.create("gateway");
const options = {
  service: "orchestrator",
  verifier: new CallerVerifier([signer.jwk]),
  log: memoryLog(),
  metrics: new Metrics(),
  open: [worker.WorkerService.typeName],
};
const unavailable = domainError({ kind: "unavailable" });

/** The behaviour of a replica for a call. */
type Conduct = (signal: AbortSignal) => Promise<void>;
const atOnce: Conduct = () => Promise.resolve();

let closers: (() => unknown)[];
let calls: string[];
beforeEach(() => void ([closers, calls] = [[], []]));
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

async function aReplica(name: string, conduct: Conduct = atOnce, listen: Partial<Http2Listen> = {}) {
  const answer = async (signal: AbortSignal) => {
    calls.push(name);
    await conduct(signal);
    return {};
  };
  const routes = (router: ConnectRouter) => {
    router.service(events.EventFeedService, {
      read: async (_request, { signal }) => ({ ...(await answer(signal)), logUid: name }),
    });
    router.service(factories.FactoryService, { updateFactory: (_request, { signal }) => answer(signal) });
    router.service(orchestrator.RunService, { createRuns: (_request, { signal }) => answer(signal) });
    router.service(worker.WorkerService, {
      register: (_request, { requestHeader }) => ({ sessionToken: requestHeader.get("authorization") ?? "" }),
      async *subscribe(_request, { signal }) {
        yield { workAvailable: true };
        await conduct(signal);
        throw notFound("session");
      },
    });
  };
  const server = await serveHttp2(routes, options, { port: 0, ...listen });
  let isOpen = true;
  const close = async (graceMs = 0) => isOpen && ((isOpen = false), await server.close(graceMs));
  closers.push(close);
  return { name, port: server.port, url: `http://127.0.0.1:${server.port}`, close };
}

function to(urls: readonly string[], more: UpstreamOptions = {}): UpstreamTransport {
  const transport = upstreamTransport(urls, more);
  closers.push(() => transport.close());
  return transport;
}
const reading = (transport: UpstreamTransport) =>
  clientFor(events.EventFeedService, transport, { signer }).read({}, call(aCaller()));
const updating = (transport: UpstreamTransport) =>
  clientFor(factories.FactoryService, transport, { signer }).updateFactory({}, call(aCaller()));
const creating = (transport: UpstreamTransport, requests: { causeKey?: string; idempotencyKey?: string }[]) =>
  clientFor(orchestrator.RunService, transport, { signer }).createRuns({ runs: requests }, call(aCaller()));

/** Blocks until the test releases it. */
function blocking(): { conduct: Conduct; go: () => void } {
  let go = (): void => {};
  const gone = new Promise<void>((resolve) => (go = resolve));
  return { conduct: () => gone, go };
}

describe("of several replicas", () => {
  test("each gets calls", async () => {
    const transport = to([(await aReplica("a")).url, (await aReplica("b")).url]);
    for (let count = 0; count < 6; count++) await reading(transport);
    expect(calls.toSorted()).toEqual(["a", "a", "a", "b", "b", "b"]);
  });
  test("the least busy is used", async () => {
    const busy = blocking();
    const [a, b] = [await aReplica("a", busy.conduct), await aReplica("b")];
    const transport = to([a.url, b.url]);
    const slow = reading(transport);
    await eventually(() => expect(calls).toEqual(["a"]));
    for (let count = 0; count < 4; count++) await reading(transport);
    busy.go();
    await slow;
    expect(calls).toEqual(["a", "b", "b", "b", "b"]);
  });
  test("an absent one is skipped, by every method", async () => {
    const [gone, b] = [await aReplica("gone"), await aReplica("b")];
    await gone.close();
    const transport = to([gone.url, b.url]);
    for (let count = 0; count < 4; count++) await updating(transport);
    expect(calls).toEqual(["b", "b", "b", "b"]);
  });
  test("a recovered one is used again", async () => {
    const a = await aReplica("a");
    const transport = to([a.url]);
    await reading(transport);
    await a.close();
    await expect(reading(transport)).rejects.toEqual(unavailable);
    await aReplica("again", atOnce, { port: a.port });
    expect((await reading(transport)).logUid).toBe("again");
  });
  test("an error of the service is returned, and not retried elsewhere", async () => {
    const refusing: Conduct = () => Promise.reject(notFound("log"));
    const transport = to([(await aReplica("a", refusing)).url, (await aReplica("b", refusing)).url]);
    await expect(reading(transport)).rejects.toEqual(domainError({ reason: "log_not_found" }));
    expect(calls).toHaveLength(1);
  });
});

describe("a replica that dies in the middle of a call", () => {
  async function both() {
    let die = (): unknown => undefined;
    const stays = blocking();
    closers.push(stays.go);
    const first = await aReplica("first", (signal) => {
      void die();
      return stays.conduct(signal);
    });
    die = () => first.close();
    return to([first.url, (await aReplica("second")).url]);
  }
  /** Calls until the dying replica was used. */
  async function untilAsked(ask: () => Promise<unknown>): Promise<unknown[]> {
    const outcomes: unknown[] = [];
    while (!calls.includes("first"))
      outcomes.push(
        await ask().then(
          () => "answered",
          (error: unknown) => error,
        ),
      );
    return outcomes;
  }
  test("is replaced by another for reads", async () => {
    const transport = await both();
    expect(new Set(await untilAsked(() => reading(transport)))).toEqual(new Set(["answered"]));
    expect(calls.at(-1)).toBe("second");
  });
  test("and for requests with an idempotency key", async () => {
    const transport = await both();
    expect(new Set(await untilAsked(() => creating(transport, [{ causeKey: "c" }, { idempotencyKey: "i" }])))).toEqual(
      new Set(["answered"]),
    );
  });
  test("but not for requests without a key, or for other changes", async () => {
    const keyless = await both();
    expect((await untilAsked(() => creating(keyless, [{ causeKey: "c" }, {}]))).at(-1)).toEqual(unavailable);
    calls = [];
    const changing = await both();
    expect((await untilAsked(() => updating(changing))).at(-1)).toEqual(unavailable);
  });
});

/** Starts an HTTP/2 server whose streams do this. Returns its URL. */
async function aServer(conduct: (stream: ServerHttp2Stream) => void): Promise<string> {
  const server = createHttp2Server().on("stream", conduct);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([
  ["before", 0],
  ["in the middle of", 5],
])("a response that ends %s its body is none", async (_when, bytes) => {
  const cutting = await aServer((stream) => {
    stream.respond({ "content-type": "application/proto", "content-length": 9 });
    stream.write(new Uint8Array(bytes), () => stream.close(constants.NGHTTP2_NO_ERROR));
  });
  await expect(updating(to([cutting]))).rejects.toEqual(unavailable);
  const transport = to([cutting, (await aReplica("second")).url]);
  for (let count = 0; count < 4; count++) expect((await reading(transport)).logUid).toBe("second");
});

test.each(["NGHTTP2_INTERNAL_ERROR", "NGHTTP2_PROTOCOL_ERROR", "NGHTTP2_NO_ERROR"] as const)(
  "a session that its server ends with %s fails its calls as unavailable, and reads are repeated elsewhere",
  async (reset) => {
    const ending = await aServer(({ session }) => session?.destroy(undefined, constants[reset]));
    await expect(updating(to([ending]))).rejects.toEqual(unavailable);
    const transport = to([ending, (await aReplica("second")).url]);
    for (let count = 0; count < 4; count++) expect((await reading(transport)).logUid).toBe("second");
  },
);

test("a replica that stops to respond fails its calls, and reads are repeated on a new connection", async () => {
  const replica = await aReplica("a", atOnce);
  const sockets: Socket[] = [];
  const relay = createServer((client) => {
    const server = connect(replica.port, "127.0.0.1");
    sockets.push(client, server);
    for (const socket of [client, server]) socket.on("error", () => {});
    client.pipe(server).pipe(client);
  });
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    relay.close();
  });
  await once(relay.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`;
  const transport = to([url], { ping: { everyMs: 200, timeoutMs: 200 } });
  await reading(transport);

  const [client, server] = sockets as [Socket, Socket];
  client.unpipe(server); // as a frozen process, or a network that drops packets: the connection remains open
  client.pause();
  const [read, change] = [reading(transport), updating(transport)];
  await expect(change).rejects.toThrow(unavailable);
  expect((await read).logUid).toBe("a");
});

test("a name resolves to every address, and to new ones later", async () => {
  const [a] = [await aReplica("a", atOnce, { host: "127.0.0.1" })];
  await aReplica("b", atOnce, { host: "127.0.0.2", port: a.port });
  const asked: string[] = [];
  const transport = to([`http://neighbour.test:${a.port}`], {
    resolve: async (name) => (asked.push(name), ["127.0.0.1", "127.0.0.2"]),
  });
  for (let count = 0; count < 4; count++) await reading(transport);
  expect(calls.toSorted()).toEqual(["a", "a", "b", "b"]);
  expect(asked).toEqual(["neighbour.test"]);
});

describe("with TLS", () => {
  const pem = (name: string) => readFileSync(new URL(`tls/${name}.pem`, import.meta.url), "utf8");
  const resolve = async () => ["127.0.0.1"];
  test("the certificate must be trusted, and issued for the name", async () => {
    const { port } = await aReplica("a", atOnce, { tls: { cert: pem("cert"), key: pem("key") } });
    const trusting = { ca: pem("cert"), resolve };
    expect((await reading(to([`https://neighbour.test:${port}`], trusting))).logUid).toBe("a");
    await expect(reading(to([`https://neighbour.test:${port}`], { resolve }))).rejects.toEqual(unavailable);
    await expect(reading(to([`https://other.test:${port}`], trusting))).rejects.toEqual(unavailable);
    await expect(reading(to([`http://neighbour.test:${port}`], { resolve }))).rejects.toEqual(unavailable);
  });
});

test("more than a thousand open streams do not delay other calls", async () => {
  const ended = blocking();
  const transport = to([(await aReplica("a", ended.conduct)).url]);
  const client = clientFor(worker.WorkerService, transport);
  const leaving = new AbortController();
  const streams = Array.from({ length: 1_100 }, () =>
    client.subscribe({}, { signal: leaving.signal, timeoutMs: 0 })[Symbol.asyncIterator](),
  );
  const opened = await Promise.all(streams.map((stream) => stream.next()));
  expect(opened.every(({ done }) => !done)).toBe(true);
  await client.register({});
  const left = Promise.allSettled(streams.map((stream) => stream.next()));
  leaving.abort();
  await left;
  ended.go();
});

describe("a service forwarded to an upstream service", () => {
  const forwarded = async (conduct?: Conduct) => {
    const transport = to([(await aReplica("a", conduct)).url]);
    return clientFor(
      worker.WorkerService,
      inProcess((router) => forwardService(router, worker.WorkerService, transport), {
        ...options,
        service: "gateway",
      }),
    );
  };
  test("gets the caller's own credential", async () => {
    expect((await (await forwarded()).register({}, { headers: { authorization: "Bearer w1" } })).sessionToken).toBe(
      "Bearer w1",
    );
  });
  test("streams, including errors at the end", async () => {
    const seen: boolean[] = [];
    const stream = (await forwarded()).subscribe({});
    await expect(async () => {
      for await (const { workAvailable } of stream) seen.push(workAvailable);
    }).rejects.toEqual(domainError({ reason: "session_not_found" }));
    expect(seen).toEqual([true]);
  });
  test("is notified when the caller cancels", async () => {
    let isAborted = false;
    const client = await forwarded(
      (signal) => new Promise((resolve) => signal.addEventListener("abort", () => ((isAborted = true), resolve()))),
    );
    const leaving = new AbortController();
    const messages = client.subscribe({}, { signal: leaving.signal })[Symbol.asyncIterator]();
    expect((await messages.next()).done).toBe(false);
    leaving.abort();
    await eventually(() => expect(isAborted).toBe(true));
  });
});
