import { invalidArgument } from "@millwright/errors";

/** The ticket of a dispatched run: `<source>:<id>`, such as `linear:ABC-12`. */
export type Ticket = { source: string; id: string };

const TICKET_REF_MAX = 512;

/**
 * Splits a reference at its first colon.
 *
 * Errors: invalid_ticket_ref unless both parts are not empty.
 */
export function parseTicketRef(ref: string): Ticket {
  const colon = ref.indexOf(":");
  const [source, id] = [ref.slice(0, Math.max(colon, 0)).trim(), ref.slice(colon + 1).trim()];
  if (source !== "" && id !== "" && ref.length <= TICKET_REF_MAX) return { source, id };
  throw invalidArgument("invalid_ticket_ref", "ticket_ref must have the form <source>:<id>, such as linear:ABC-12.");
}

/** Returns a ticket for work without one. */
export const mintTicket = (id: string): Ticket => ({ source: "adhoc", id });

export const ticketRef = ({ source, id }: Ticket): string => `${source}:${id}`;
