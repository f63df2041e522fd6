import type { ReactNode } from "react";
import { Select } from "../../ui/select-field.tsx";

/** Chooses the dimension of a breakdown. */
export function DimensionChoice<Dimension extends string>({
  label,
  value,
  choices,
  onChange,
}: {
  label: string;
  value: Dimension;
  choices: readonly Dimension[];
  onChange: (value: Dimension) => void;
}): ReactNode {
  return (
    <div className="filters">
      <span className="date-filter">
        <span aria-hidden>{label}</span>
        <Select
          label={label}
          value={value}
          choices={choices.map((choice) => ({ value: choice, label: choice.replaceAll("_", " ") }))}
          onChange={onChange}
        />
      </span>
    </div>
  );
}
