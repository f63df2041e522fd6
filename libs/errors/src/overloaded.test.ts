import { expect, test } from "@jest/globals";
import { asDomainError, problemOf } from "./index.ts";
import { isOverloaded } from "./overloaded.ts";

const withCode = (code: string, meta?: object) => Object.assign(new Error("failed"), { code, meta });

test.each<[string, unknown, boolean]>([
  ["a statement that was cancelled by its timeout", withCode("57014"), true],
  [
    "such a statement of Prisma",
    withCode("P2010", { driverAdapterError: { name: "DriverAdapterError", cause: { originalCode: "57014" } } }),
    true,
  ],
  ["a lock that was not available", withCode("55P03"), true],
  ["no connection in time", withCode("P2024"), true],
  ["no transaction in time", withCode("P2028"), true],
  ["a unique key", withCode("23505"), false],
  ["a fault of ours", new TypeError("x is undefined"), false],
  ["nothing", undefined, false],
])("distinguishes an overloaded database: %s", (_what, error, isBusy) => {
  expect([isOverloaded(error), asDomainError(error).reason]).toEqual([isBusy, isBusy ? "database_busy" : "internal"]);
});

const context = { publicUrl: "https://mill.example", path: "/api/v1/things", traceId: "t" };

test("a client retries a read that an overloaded database did not complete", () => {
  const { status, headers, body } = problemOf(asDomainError(withCode("57014")), { ...context, isUnrepeatable: false });
  expect([status, headers["retry-after"], headers["x-should-retry"]]).toEqual([500, "2", "true"]);
  expect(body).toMatchObject({ error_code: "internal_error", reason: "database_busy", retryable: true });
});

test("a client does not repeat a create that may have happened", () => {
  const { headers } = problemOf(asDomainError(withCode("57014")), { ...context, isUnrepeatable: true });
  expect([headers["retry-after"], headers["x-should-retry"]]).toEqual([undefined, "false"]);
});
