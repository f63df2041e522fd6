import { expect, test } from "@jest/globals";
import { JsonRpc } from "./json-rpc.ts";

function aPeer() {
  const [sent, noted, unknown]: [object[], unknown[], string[]] = [[], [], []];
  const rpc = new JsonRpc({
    send: (line) => void sent.push(JSON.parse(line) as object),
    onNotification: (method, params) => noted.push([method, params]) > 0 && method !== "later",
    onUnknown: (line) => void unknown.push(line),
    onRequest: (method) => (method === "ask" ? { ok: true } : undefined),
  });
  return { rpc, sent, noted, unknown };
}

test("responses are matched to their requests in any order", async () => {
  const { rpc, sent } = aPeer();
  const [first, second] = [rpc.request("a", { x: 1 }), rpc.request("b", {})];
  rpc.receive('{"id":2,"result":{"is":"b"}}');
  rpc.receive('{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"No."}}');
  await expect(first).rejects.toMatchObject({ code: -32_600, message: "No." });
  expect(await second).toEqual({ is: "b" });
  expect(sent).toEqual([
    { jsonrpc: "2.0", id: 1, method: "a", params: { x: 1 } },
    { jsonrpc: "2.0", id: 2, method: "b", params: {} },
  ]);
});

test("requests of the peer get a response, with numeric and text ids; notifications do not", () => {
  const { rpc, sent, noted } = aPeer();
  for (const line of [
    '{"id":"7","method":"ask","params":{}}',
    '{"id":0,"method":"other"}',
    '{"method":"news","params":{"a":1}}',
  ])
    rpc.receive(line);
  expect(sent).toEqual([
    { jsonrpc: "2.0", id: "7", result: { ok: true } },
    { jsonrpc: "2.0", id: 0, error: { code: -32_601, message: 'Unknown method "other".' } },
  ]);
  expect(noted).toEqual([["news", { a: 1 }]]);
});

test.each(["", "no JSON", "[1]", "null", '{"id":99,"result":{}}', '{"id":1}', '{"result":{}}'])(
  "%j means nothing",
  (line) => {
    const { rpc, sent, noted } = aPeer();
    rpc.receive(line);
    expect([sent, noted]).toEqual([[], []]);
  },
);

test("unknown lines are reported unchanged", () => {
  const { rpc, unknown } = aPeer();
  const [lines, known] = [
    ["no JSON", "[1]", '{"id":77,"result":{}}', '{"id":1,"method":"other"}', '{"method":"later"}'],
    ['{"method":"news"}', '{"id":2,"method":"ask"}'],
  ];
  for (const line of [...lines, ...known]) rpc.receive(line);
  expect(unknown).toEqual(lines);
});
