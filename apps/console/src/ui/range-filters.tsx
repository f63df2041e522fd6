import type { ReactNode } from "react";
import { ClearFilters, DateFilter } from "./filters.tsx";
import { PERIODS, rangesAt, type RangeSearch } from "./periods.ts";
import { Select } from "./select-field.tsx";

const CUSTOM = "Custom range";

/** The range and the periods of the charts. */
export function RangeFilters({
  search,
  onChange,
}: {
  search: RangeSearch;
  onChange: (changes: Partial<RangeSearch>) => void;
}): ReactNode {
  const { rangeText, presets } = rangesAt(Date.now());
  const { from, before } = search;
  const preset = presets.find((each) => each.from === from && each.before === before);
  return (
    <>
      <Select
        label="Range"
        value={preset?.label ?? CUSTOM}
        choices={[...presets.map(({ label }) => label), ...(preset ? [] : [CUSTOM])].map((label) => ({
          value: label,
          label,
        }))}
        onChange={(label) => {
          const chosen = presets.find((each) => each.label === label);
          if (chosen) onChange({ from: chosen.from, before: chosen.before });
        }}
      />
      <DateFilter label="From (UTC)" value={from} onChange={(date) => onChange({ from: date })} />
      <DateFilter label="Before (exclusive)" value={before} onChange={(date) => onChange({ before: date })} />
      <Select
        label="Period"
        value={search.period ?? "day"}
        choices={PERIODS.map((period) => ({ value: period, label: `Per ${period}` }))}
        onChange={(period) => onChange({ period })}
      />
      <ClearFilters
        isActive={[from, before, search.period].some((value) => value !== undefined)}
        onClear={() => onChange({ from: undefined, before: undefined, period: undefined })}
      />
      <span className="soft small">{rangeText(search)}</span>
    </>
  );
}
