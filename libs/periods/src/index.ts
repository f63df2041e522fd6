export {
  calendarPeriod,
  PERIOD_UNITS,
  periodsOf,
  resolveRange,
  type DateRange,
  type Period,
  type PeriodUnit,
} from "./periods.ts";
