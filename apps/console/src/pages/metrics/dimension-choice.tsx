import type { ReactNode } from "react";

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
      <label className="date-filter">
        {label}
        <select className="select" value={value} onChange={(event) => onChange(event.target.value as Dimension)}>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice.replaceAll("_", " ")}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
