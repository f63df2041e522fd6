import { describe, expect, test } from "@jest/globals";
import { bestEffort, DomainError, ERROR_KINDS, isDomainError, notFound, type ErrorKindName } from "./index.ts";

describe("a domain error", () => {
  test.each(Object.keys(ERROR_KINDS) as ErrorKindName[])(
    "of kind %s takes code and retryability from the table",
    (kind) => {
      const error = new DomainError({ kind, reason: "some_reason", message: "text" });
      expect({ code: error.code, retryable: error.retryable }).toEqual({
        code: ERROR_KINDS[kind].code,
        retryable: ERROR_KINDS[kind].retryable,
      });
    },
  );

  test("may name a finer catalog code and its own retryability", () => {
    const error = new DomainError({
      kind: "unsupported",
      reason: "r",
      message: "m",
      code: "unknown_attachment",
      retryable: true,
    });
    expect(error).toMatchObject({ code: "unknown_attachment", retryable: true });
  });

  test("stores its cause in the error object only", () => {
    const cause = new Error("private");
    const error = new DomainError({ kind: "internal", reason: "r", message: "m", cause });
    expect(error.cause).toBe(cause);
    expect(JSON.stringify(error)).not.toContain("private");
  });

  test("is recognised among other errors", () => {
    expect(isDomainError(notFound("run"))).toBe(true);
    expect([new Error("x"), "x", undefined, { kind: "internal", reason: "x" }].map(isDomainError)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });
});

test.each([
  ["run", "run_not_found", "No such run, or it is not visible to you."],
  ["agent_identity", "agent_identity_not_found", "No such agent identity, or it is not visible to you."],
])("an absent and a hidden %s have the same reason and text", (thing, reason, message) => {
  expect(notFound(thing)).toMatchObject({ kind: "not_found", reason, message, retryable: false });
});

test("a best effort logs its failure by name and does not throw", async () => {
  const warnings: unknown[] = [];
  await bestEffort("warm the cache", { warn: (fields) => warnings.push(fields.operation) }, () =>
    Promise.reject(new Error("cold")),
  );
  await bestEffort("fine", { warn: (fields) => warnings.push(fields.operation) }, () => "ok");
  expect(warnings).toEqual(["warm the cache"]);
});
