export { manualClock, systemClock, type Clock, type ManualClock } from "./clock.ts";
