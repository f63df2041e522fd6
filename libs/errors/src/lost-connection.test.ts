import { describe, expect, test } from "@jest/globals";
import { asDomainError, isLostConnection } from "./index.ts";

describe("distinguishes a failed connection from a failed statement", () => {
  test.each<[string, unknown, boolean]>([
    [
      "a database that is shutting down",
      Object.assign(new Error("terminating connection due to administrator command"), { code: "57P01" }),
      true,
    ],
    ["a connection that broke", new Error("Connection terminated unexpectedly"), true],
    ["one that had broken before", new Error("Client has encountered a connection error and is not queryable"), true],
    ["one that could not be had", new Error("timeout exceeded when trying to connect"), true],
    ["a socket that was closed", Object.assign(new Error("write EPIPE"), { code: "EPIPE" }), true],
    [
      "a Unix socket that the server has removed",
      Object.assign(new Error("connect ENOENT /data/.s.PGSQL.5432"), { code: "ENOENT", syscall: "connect" }),
      true,
    ],
    ["a file that does not exist", Object.assign(new Error("open ENOENT /data/file"), { code: "ENOENT" }), false],
    ["Prisma's code for it", Object.assign(new Error("Invalid invocation"), { code: "P1017" }), true],
    [
      "Prisma's message for a removed socket",
      Object.assign(new Error("Invalid invocation:\n\n\nconnect ENOENT /data/.s.PGSQL.5432"), { code: "ENOENT" }),
      true,
    ],
    [
      "Prisma's message in a raw query",
      Object.assign(new Error("Raw query failed."), { code: "P2010", meta: { code: "57P01" } }),
      true,
    ],
    ["a unique key", Object.assign(new Error("duplicate key"), { code: "23505" }), false],
    ["a fault of ours", new TypeError("x is undefined"), false],
    ["a response with another kind of code", { code: 5, message: "not found" }, false],
    ["nothing", undefined, false],
  ])("%s", (_what, error, isLost) => {
    expect([isLostConnection(error), asDomainError(error).reason]).toEqual([
      isLost,
      isLost ? "service_unavailable" : "internal",
    ]);
  });
});
