import { invalidArgument } from "@millwright/errors";

/** The ticket of a dispatched run: `<source>:<id>`, such as `linear:ABC-12`. */
export type Ticket = { source: string; id: string };

/** Bytes of the source and of the id: each becomes a metadata value of the run. */
const PART_BYTES_MAX = 256;

/**
 * Splits a reference at its first colon.
 *
 * Errors: invalid_ticket_ref unless both parts have 1 to 256 bytes.
 */
export function parseTicketRef(ref: string): Ticket {
  const colon = ref.indexOf(":");
  const [source, id] = [ref.slice(0, Math.max(colon, 0)).trim(), ref.slice(colon + 1).trim()];
  if (source === "" || id === "")
    throw invalidArgument("invalid_ticket_ref", "ticket_ref must have the form <source>:<id>, such as linear:ABC-12.");
  for (const [part, bytes] of [
    ["source", Buffer.byteLength(source)],
    ["id", Buffer.byteLength(id)],
  ] as const)
    if (bytes > PART_BYTES_MAX)
      throw invalidArgument(
        "invalid_ticket_ref",
        `The ${part} in ticket_ref must have at most ${PART_BYTES_MAX} bytes (got ${bytes} bytes).`,
      );
  return { source, id };
}

/** Returns a ticket for work without one. */
export const mintTicket = (id: string): Ticket => ({ source: "adhoc", id });

export const ticketRef = ({ source, id }: Ticket): string => `${source}:${id}`;
