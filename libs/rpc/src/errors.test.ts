import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "@jest/globals";
import { CONNECT_CODES, DomainError, ERROR_KINDS, type ErrorKindName } from "@millwright/errors";
import { domainError } from "@millwright/testing";
import { fromConnectError, toConnectError } from "./index.ts";

test("the table of codes equals Connect's", () => {
  for (const [name, number] of Object.entries(CONNECT_CODES)) expect(Code[number]).toBe(name);
});

test.each(Object.keys(ERROR_KINDS) as ErrorKindName[])("an error of kind %s is the same on the client", (kind) => {
  const error = new DomainError({ kind, reason: "some_reason", message: "Text." });
  expect(fromConnectError(toConnectError(error))).toEqual(
    domainError({ kind, reason: "some_reason", code: error.code, retryable: error.retryable }),
  );
});

test.each([
  ["unavailable", new ConnectError("x", Code.Unavailable), "unavailable", "service_unavailable"],
  ["deadline exceeded", new ConnectError("x", Code.DeadlineExceeded), "unavailable", "deadline_exceeded"],
  ["not found, but not by our hand", new ConnectError("x", Code.NotFound), "internal", "unexpected_answer"],
  [
    "a network failure that Connect does not know is unavailable",
    new ConnectError("x", Code.Internal, undefined, undefined, Object.assign(new Error("x"), { code: "EHOSTUNREACH" })),
    "unavailable",
    "service_unavailable",
  ],
  ["anything else", new TypeError("x"), "internal", "unexpected_answer"],
])("%s without a detail is translated", (_, error, kind, reason) =>
  expect(fromConnectError(error)).toEqual(domainError({ kind, reason })),
);
