export { parseCron, type Cron, type CronDialect } from "./parse-cron.ts";
export { nextSlot, slotsUntil } from "./next-slot.ts";
export { isTimeZone, ZoneOffsets } from "./zone-offsets.ts";
