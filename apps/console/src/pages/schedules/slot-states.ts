/** The states of a slot, from waiting to decided. */
export const SLOT_STATES = ["due", "buffered", "fired", "skipped", "missed"] as const;
