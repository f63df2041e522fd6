import { describe, expect, test } from "@jest/globals";
import { checkMcpServers, frozenMcpServers, readManagedMcpServers, shownMcpServers } from "./mcp-servers.ts";

test("accepts a command, a URL and a reference, and ignores null and unknown members", () => {
  const servers = {
    calc: { command: "npx", args: ["calc"], env: { KEY: "${KEY}" }, url: null, extra: 1 },
    web: { url: "https://${HOST}/mcp", headers: { Authorization: "Bearer ${KEY}" } },
    docs: { warp_id: "srv-1", env: { LEVEL: "2" } },
    unknown: { warp_id: "srv-2" },
  };
  expect(checkMcpServers(servers)).toBe(servers);
  expect(frozenMcpServers(servers, { "srv-1": { command: "docs", args: [], env: { LEVEL: "1", MODE: "a" } } })).toEqual(
    {
      calc: { command: "npx", args: ["calc"], env: { KEY: "${KEY}" } },
      web: { url: "https://${HOST}/mcp", headers: { Authorization: "Bearer ${KEY}" } },
      docs: { command: "docs", args: [], env: { LEVEL: "2", MODE: "a" }, managed_id: "srv-1" },
      unknown: { managed_id: "srv-2" },
    },
  );
});

test("shows references and plain values, and masks literal secrets", () => {
  const servers = {
    calc: {
      command: "npx",
      args: ["calc"],
      env: { API_KEY: "k-12345", OTHER_KEY: "${KEY}", LEVEL: "2", EMPTY_TOKEN: "" },
    },
    web: {
      url: "https://user:hunter2@h/mcp?x=1",
      headers: { Authorization: "Bearer abc", "X-Auth": "Bearer ${KEY}", Accept: "text/plain" },
    },
    docs: { warp_id: "srv-1", env: { SESSION_COOKIE: "c" } },
    odd: { url: "https://${USER}:${PASSWORD}@h/", headers: null },
  };
  expect(shownMcpServers(servers)).toEqual({
    calc: { command: "npx", args: ["calc"], env: { API_KEY: "***", OTHER_KEY: "${KEY}", LEVEL: "2", EMPTY_TOKEN: "" } },
    web: {
      url: "https://user:***@h/mcp?x=1",
      headers: { Authorization: "***", "X-Auth": "Bearer ${KEY}", Accept: "text/plain" },
    },
    docs: { warp_id: "srv-1", env: { SESSION_COOKIE: "***" } },
    odd: { url: "https://${USER}:${PASSWORD}@h/", headers: null },
  });
  expect(JSON.stringify(frozenMcpServers(servers, {}))).toContain("hunter2"); // the run stores the values
});

describe("refused, naming the field", () => {
  test.each([
    [{ a: 1 }, "mcp_servers.a"],
    [{ "": { command: "x" } }, "mcp_servers."],
    [{ a: {} }, "mcp_servers.a"],
    [{ a: { command: "x", url: "https://h" } }, "mcp_servers.a"],
    [{ a: { command: "  " } }, "mcp_servers.a.command"],
    [{ a: { command: 5 } }, "mcp_servers.a.command"],
    [{ a: { url: "ftp://h" } }, "mcp_servers.a.url"],
    [{ a: { url: "not a url" } }, "mcp_servers.a.url"],
    [{ a: { url: "https://h", args: ["x"] } }, "mcp_servers.a.args"],
    [{ a: { command: "x", headers: { A: "b" } } }, "mcp_servers.a.headers"],
    [{ a: { command: "x", args: [1] } }, "mcp_servers.a.args"],
    [{ a: { command: "x", env: { "A B": "c" } } }, "mcp_servers.a.env.A B"],
    [{ a: { command: "x", env: { A: 1 } } }, "mcp_servers.a.env.A"],
    [{ a: { url: "https://h", headers: { A: "b\r\nC: d" } } }, "mcp_servers.a.headers.A"],
    [Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`s${n}`, { command: "x" }])), "mcp_servers"],
    [{ a: { command: "x".repeat(40_000) } }, "mcp_servers"],
  ])("%j", (servers, key) =>
    expect(() => checkMcpServers(servers)).toThrow(
      expect.objectContaining({ reason: "config_invalid", metadata: { key } }),
    ),
  );
});

test("reads the operator's servers from JSON and reports errors", () => {
  expect(readManagedMcpServers("")).toEqual({});
  expect(readManagedMcpServers('{"srv-1":{"url":"https://h/mcp"}}')).toEqual({
    "srv-1": { url: "https://h/mcp", headers: {} },
  });
  for (const text of ["[]", "{", '{"a":{}}']) expect(() => readManagedMcpServers(text)).toThrow(/JSON|must/);
});
