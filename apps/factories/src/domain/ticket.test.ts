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

test("a generated reference can be parsed", () => {
  expect(parseTicketRef(ticketRef(mintTicket("1")))).toEqual({ source: "adhoc", id: "1" });
});
