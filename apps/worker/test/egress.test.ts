import { createServer as createHttpServer, request as httpRequest, type Server } from "node:http";
import { connect, createServer, type AddressInfo, type Server as NetServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { Denials, type Denial } from "../src/egress/denials.ts";
import { EgressProxy } from "../src/egress/egress-proxy.ts";
import { EgressPolicy } from "../src/egress/policy.ts";
import { aDirectory, type TestDirectory } from "./support/directory.ts";
import { TestGate } from "./support/outbound-gate.ts";

let dir: TestDirectory;
let origin: Server;
let echo: NetServer;
let [originPort, echoPort] = [0, 0];
let seen: string[] = [];
const proxies: EgressProxy[] = [];

beforeEach(async () => {
  dir = await aDirectory();
  seen = [];
  origin = createHttpServer((request, response) => {
    const body: Buffer[] = [];
    request.on("data", (chunk: Buffer) => body.push(chunk));
    request.on("end", () => {
      seen.push(
        `${request.method} ${request.url} ${request.headers.host} ${request.headers["proxy-authorization"] ?? "-"} ${Buffer.concat(body).toString()}`,
      );
      response.writeHead(201, { "x-from": "origin", connection: "x-hop", "x-hop": "1" }).end("hello");
    });
  });
  echo = createServer((socket) => socket.pipe(socket));
  [originPort, echoPort] = [await listen(origin), await listen(echo)];
});
afterEach(async () => {
  for (const proxy of proxies.splice(0)) proxy.close();
  origin.closeAllConnections();
  await Promise.all([origin, echo].map((server) => new Promise((resolve) => server.close(resolve))));
  await dir.remove();
});
const listen = (server: NetServer): Promise<number> =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));

type Options = {
  allow?: string[];
  internal?: string[];
  narrowed?: string[];
  names?: Record<string, string[]>;
  gate?: TestGate;
};

/** Starts a proxy whose resolver returns the addresses in `names`. */
async function aProxy({ allow = [], internal = [], narrowed, names = {}, gate = new TestGate() }: Options) {
  const [denied, asked]: [Denial[], string[]] = [[], []];
  const policy = new EgressPolicy(
    { allow, internal },
    narrowed,
    (host) => (asked.push(host), Promise.resolve(names[host] ?? [])),
  );
  const socket = join(dir.path, `proxy-${proxies.length}.sock`);
  const proxy = await EgressProxy.listen(socket, { policy, gate, onDenied: (denial) => denied.push(denial) });
  proxies.push(proxy);
  return { proxy, socket, denied, asked, gate };
}

/** Sends one request through the proxy. */
function get(
  socketPath: string,
  url: string,
  {
    method = "GET",
    body = "",
    headers = {},
  }: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; headers: Record<string, unknown>; body: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ socketPath, method, path: url, headers, agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
    });
    request.on("error", reject);
    request.end(body);
  });
}

/** Opens a tunnel. Resolves when it is open or was refused. */
function tunnel(
  socketPath: string,
  authority: string,
): Promise<{ status: number; socket: Socket; received: () => string; closed: Promise<void> }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: socketPath });
    let text = "";
    const closed = new Promise<void>((end) => socket.once("close", () => end()));
    socket.on("error", reject);
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const [, status] = /^HTTP\/1\.1 (\d+)[^]*?\r\n\r\n/.exec(text) ?? [];
      if (status)
        resolve({ status: Number(status), socket, received: () => text.slice(text.indexOf("\r\n\r\n") + 4), closed });
    });
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`);
  });
}

describe("a host that is allowed", () => {
  test("is reached by plain HTTP with its own Host header and without proxy headers", async () => {
    const { socket, denied, asked } = await aProxy({
      allow: [`shop.test:${originPort}`],
      internal: ["127.0.0.1"],
      names: { "shop.test": ["127.0.0.1"] },
    });
    const response = await get(socket, `http://shop.test:${originPort}/a?b=c`, {
      method: "POST",
      body: "sent",
      headers: { host: "other.test", "proxy-authorization": "x" },
    });
    expect(response).toMatchObject({ status: 201, body: "hello", headers: { "x-from": "origin" } });
    expect(response.headers["x-hop"]).toBeUndefined();
    expect(seen).toEqual([`POST /a?b=c shop.test:${originPort} - sent`]);
    expect([denied, asked]).toEqual([[], ["shop.test"]]);
  });

  test("is reached through a tunnel, and both sides end at the same time", async () => {
    const { socket } = await aProxy({
      allow: ["echo.test:*"],
      internal: ["127.0.0.0/8"],
      names: { "echo.test": ["127.0.0.1"] },
    });
    const opened = await tunnel(socket, `echo.test:${echoPort}`);
    opened.socket.write("ping");
    await eventually(() => expect(opened.received()).toBe("ping"));
    opened.socket.end();
    await opened.closed;
    expect(opened.status).toBe(200);
  });

  test("is reached through its permitted address if only one of them is permitted", async () => {
    const { socket } = await aProxy({
      allow: [`shop.test:${originPort}`],
      internal: ["127.0.0.1"],
      names: { "shop.test": ["10.0.0.1", "127.0.0.1"] },
    });
    expect((await get(socket, `http://shop.test:${originPort}/`)).status).toBe(201);
  });

  test("that does not respond is a bad gateway, not a denial", async () => {
    const { socket, denied } = await aProxy({
      allow: ["*:*"],
      internal: ["127.0.0.1"],
      names: { "gone.test": ["127.0.0.1"] },
    });
    await new Promise((resolve) => echo.close(resolve));
    expect([
      (await get(socket, `http://gone.test:${echoPort}/`)).status,
      (await tunnel(socket, `gone.test:${echoPort}`)).status,
      denied,
    ]).toEqual([502, 502, []]);
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
  });
});

describe("denied hosts", () => {
  test("a host or port that is not listed, without a DNS lookup", async () => {
    const { socket, denied, asked } = await aProxy({ allow: ["shop.test"], names: { "evil.test": ["1.1.1.1"] } });
    expect(await get(socket, "http://evil.test/")).toMatchObject({
      status: 403,
      body: expect.stringContaining("evil.test:80"),
    });
    expect((await tunnel(socket, "evil.test:443")).status).toBe(403);
    expect((await tunnel(socket, "shop.test:22")).status).toBe(403);
    expect(denied.map(({ host, port, reason }) => `${host}:${port} ${reason}`)).toEqual([
      "evil.test:80 host_not_allowed",
      "evil.test:443 host_not_allowed",
      "shop.test:22 host_not_allowed",
    ]);
    expect(asked).toEqual([]);
  });

  test("a name that leads to an internal address, also when it led elsewhere a moment ago", async () => {
    const names = { "rebind.test": ["127.0.0.1"] };
    const { socket, denied } = await aProxy({ allow: ["*:*"], names });
    expect((await get(socket, `http://rebind.test:${originPort}/`)).status).toBe(403);
    expect((await tunnel(socket, `rebind.test:${echoPort}`)).status).toBe(403);
    names["rebind.test"] = ["169.254.169.254", "fd00::1", "::ffff:10.0.0.1"];
    expect((await tunnel(socket, "rebind.test:80")).status).toBe(403);
    expect([denied.map(({ reason }) => reason), seen]).toEqual([Array(3).fill("internal_address"), []]);
  });

  test.each([
    "127.0.0.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "0.0.0.0",
  ])("the machine itself as %s, whatever hosts are allowed", async (host) => {
    const { socket, denied } = await aProxy({ allow: ["*:*"], names: { localhost: ["127.0.0.1", "::1"] } });
    expect((await get(socket, `http://${host}:${originPort}/`)).status).toBe(403);
    expect((await tunnel(socket, `${host}:${echoPort}`)).status).toBe(403);
    expect([denied.map(({ reason }) => reason), seen]).toEqual([["internal_address", "internal_address"], []]);
  });

  test("hosts that the environment omits; it cannot add any", async () => {
    const { socket, denied } = await aProxy({
      allow: [`a.test:${originPort}`, `b.test:${originPort}`],
      narrowed: ["a.test:*", "c.test:*"],
      internal: ["127.0.0.1"],
      names: { "a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"], "c.test": ["127.0.0.1"] },
    });
    const statuses = [];
    for (const host of ["a", "b", "c"]) statuses.push((await get(socket, `http://${host}.test:${originPort}/`)).status);
    expect([statuses, denied.length]).toEqual([[201, 403, 403], 2]);
  });

  test("what is no request for a proxy", async () => {
    const { socket } = await aProxy({ allow: ["*:*"] });
    expect((await get(socket, "/")).status).toBe(400);
    expect((await get(socket, "https://shop.test/")).status).toBe(400);
    expect((await get(socket, "ftp://shop.test/")).status).toBe(400);
    expect((await tunnel(socket, "?")).status).toBe(400);
  });

  test("is reported once per host, up to a limit", () => {
    const reports: object[] = [];
    const denials = new Denials((payload) => reports.push(payload));
    for (let count = 0; count < 160; count += 1)
      denials.add({ host: "x".repeat(300).slice(count % 80), port: 443, reason: "host_not_allowed" });
    expect(reports.length).toBe(35); // names of more than 255 characters are equal after truncation
    for (let index = 0; index < 80; index += 1)
      denials.add({ host: `h${index}`, port: 443, reason: "host_not_allowed" });
    expect([reports.length, reports.at(-1)]).toEqual([50, expect.objectContaining({ more: true })]);
  });
});

describe("a closed outbound gate", () => {
  const open = { allow: ["*:*"], internal: ["127.0.0.1"], names: { "shop.test": ["127.0.0.1"] } };

  test("delays new requests and connections until it opens again", async () => {
    const { socket, gate } = await aProxy(open);
    gate.close();
    const response = get(socket, `http://shop.test:${originPort}/`);
    const opening = tunnel(socket, `shop.test:${echoPort}`);
    await eventually(() => expect(gate.waiting).toBe(2));
    expect(seen).toEqual([]);
    gate.open();
    expect([(await response).status, (await opening).status]).toEqual([201, 200]);
  });

  test("closes open connections before another byte passes", async () => {
    const { socket, gate } = await aProxy(open);
    const [busy, idle] = [await tunnel(socket, `shop.test:${echoPort}`), await tunnel(socket, `shop.test:${echoPort}`)];
    let arrived = "";
    echo.on("connection", (connection) => connection.on("data", (chunk: Buffer) => (arrived += chunk.toString())));
    const third = await tunnel(socket, `shop.test:${echoPort}`);
    gate.close();
    third.socket.write("late");
    busy.socket.write("late");
    await Promise.all([busy.closed, idle.closed, third.closed]);
    expect([busy.received(), third.received(), arrived]).toEqual(["", "", ""]);
  });

  test("rejects waiting requests when the execution ends", async () => {
    const { socket, gate } = await aProxy(open);
    gate.close();
    const response = get(socket, `http://shop.test:${originPort}/`);
    await eventually(() => expect(gate.waiting).toBe(1));
    gate.end(new Error("lost"));
    await expect(response).rejects.toThrow(/hang up|reset/);
  });
});

test("a socket path may be longer than the system's limit", async () => {
  const deep = join(dir.path, "x".repeat(60), "y".repeat(60));
  await dir.make(deep);
  const proxy = await EgressProxy.listen(join(deep, "proxy.sock"), {
    policy: new EgressPolicy({ allow: [], internal: [] }),
    gate: new TestGate(),
    onDenied: () => undefined,
  });
  proxies.push(proxy);
  expect(await dir.list(deep)).toEqual(["proxy.sock"]);
});
