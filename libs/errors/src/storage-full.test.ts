import { expect, test } from "@jest/globals";
import { asDomainError, isStorageFull } from "./index.ts";

const coded = (code: string) => Object.assign(new Error("failed"), { code });
const raw = { driverAdapterError: { cause: { kind: "postgres", code: "53100", originalCode: "53100" } } };

test.each<[string, unknown, boolean]>([
  ["a file that cannot grow", coded("ENOSPC"), true],
  ["a quota", coded("EDQUOT"), true],
  ["PostgreSQL's disk_full", coded("53100"), true],
  ["what Prisma makes of it in a raw query", Object.assign(coded("P2010"), { meta: raw }), true],
  [
    "the error of Prisma's driver adapter",
    Object.assign(new Error("x"), { cause: { kind: "postgres", code: "53100" } }),
    true,
  ],
  ["another error of the file system", coded("EACCES"), false],
  ["a unique key", coded("23505"), false],
  ["no error", undefined, false],
])("%s", (_what, error, isFull) => {
  expect([isStorageFull(error), asDomainError(error).reason === "storage_full"]).toEqual([isFull, isFull]);
});

test("a request that could not be stored is a retryable 500 with a public text", () => {
  const error = asDomainError(coded("ENOSPC"));
  expect(error).toMatchObject({
    kind: "unavailable",
    code: "resource_unavailable",
    retryable: true,
    message: expect.stringContaining("disk is full"),
  });
});
