import { invalidArgument } from "@millwright/errors";

/** What a dispatched run is about: `<source>:<id>`, such as `linear:ABC-12`. */
export type Ticket = { source: string; id: string };

const TICKET_REF_MAX = 512;

/**
 * Splits a reference at its first colon.
 *
 * Errors: invalid_ticket_ref unless both halves have something in them. Source: fields-factory §3.
 */
export function parseTicketRef(ref: string): Ticket {
  const colon = ref.indexOf(":");
  const [source, id] = [ref.slice(0, Math.max(colon, 0)).trim(), ref.slice(colon + 1).trim()];
  if (source !== "" && id !== "" && ref.length <= TICKET_REF_MAX) return { source, id };
  throw invalidArgument("invalid_ticket_ref", "ticket_ref has the form <source>:<id>, such as linear:ABC-12.");
}

/** The reference of work that has no ticket. */
export const mintTicket = (id: string): Ticket => ({ source: "adhoc", id });

export const ticketRef = ({ source, id }: Ticket): string => `${source}:${id}`;
