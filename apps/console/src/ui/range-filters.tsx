import type { ReactNode } from "react";
import { ClearFilters, DateFilter } from "./filters.tsx";
import { PERIODS, type RangeSearch } from "./periods.ts";

/** The range and the periods of the charts. */
export function RangeFilters({
  search,
  onChange,
}: {
  search: RangeSearch;
  onChange: (changes: Partial<RangeSearch>) => void;
}): ReactNode {
  return (
    <>
      <DateFilter label="From (UTC)" value={search.from} onChange={(from) => onChange({ from })} />
      <DateFilter label="Before" value={search.before} onChange={(before) => onChange({ before })} />
      <select
        className="select"
        aria-label="Period"
        value={search.period ?? "day"}
        onChange={(event) => onChange({ period: event.target.value as RangeSearch["period"] })}
      >
        {PERIODS.map((period) => (
          <option key={period} value={period}>
            Per {period}
          </option>
        ))}
      </select>
      <ClearFilters
        isActive={[search.from, search.before, search.period].some((value) => value !== undefined)}
        onClear={() => onChange({ from: undefined, before: undefined, period: undefined })}
      />
    </>
  );
}
