import { expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { mintTicket, parseTicketRef, ticketRef } from "./ticket.ts";

test.each([
  ["linear:ABC-12", { source: "linear", id: "ABC-12" }],
  ["url:https://host/a:b", { source: "url", id: "https://host/a:b" }],
  [" jira : X-1 ", { source: "jira", id: "X-1" }],
])("%j splits at the first colon", (ref, ticket) => {
  expect(parseTicketRef(ref)).toEqual(ticket);
});

test.each(["", ":", "linear:", ":ABC", "ABC-12", " : ", "a: ", `a:${"b".repeat(511)}`])("%j is rejected", (ref) => {
  expect(() => parseTicketRef(ref)).toThrow(domainError({ kind: "invalid_argument", reason: "invalid_ticket_ref" }));
});

test.each([
  ["id", `a:${"b".repeat(256)}`, `a:${"b".repeat(257)}`, 257],
  ["id", `a:${"€".repeat(85)}`, `a:${"€".repeat(86)}`, 258],
  ["source", `${"a".repeat(256)}:b`, `${"a".repeat(257)}:b`, 257],
])("a reference whose %s has more than 256 bytes is rejected with its length", (part, fitting, long, bytes) => {
  expect(ticketRef(parseTicketRef(fitting))).toBe(fitting);
  expect(() => parseTicketRef(long)).toThrow(domainError({ reason: "invalid_ticket_ref" }));
  expect(() => parseTicketRef(long)).toThrow(
    `The ${part} in ticket_ref must have at most 256 bytes (got ${bytes} bytes).`,
  );
});

test("a generated reference can be parsed", () => {
  expect(parseTicketRef(ticketRef(mintTicket("1")))).toEqual({ source: "adhoc", id: "1" });
});
