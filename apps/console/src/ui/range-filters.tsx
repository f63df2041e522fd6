import type { ReactNode } from "react";
import { ClearFilters, DateFilter } from "./filters.tsx";
import { PERIODS, type RangeSearch } from "./periods.ts";
import { Select } from "./select-field.tsx";

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
      <Select
        label="Period"
        value={search.period ?? "day"}
        choices={PERIODS.map((period) => ({ value: period, label: `Per ${period}` }))}
        onChange={(period) => onChange({ period })}
      />
      <ClearFilters
        isActive={[search.from, search.before, search.period].some((value) => value !== undefined)}
        onClear={() => onChange({ from: undefined, before: undefined, period: undefined })}
      />
    </>
  );
}
