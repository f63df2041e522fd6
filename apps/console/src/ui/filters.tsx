import { useEffect, useState, type ReactNode } from "react";
import { X } from "lucide-react";
import { Button } from "./button.tsx";
import { Menu, MenuChoice } from "./menu.tsx";
import { Select, type Choice } from "./select-field.tsx";

const TYPING_MS = 300;

/** A text filter. Writes to the URL when the reader stops typing. */
export function TextFilter({
  label,
  value,
  onChange,
  placeholder,
}: {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  placeholder?: string;
}): ReactNode {
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  useEffect(() => {
    const next = text.trim() || undefined;
    if (next === value) return undefined;
    const timer = setTimeout(() => onChange(next), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  return (
    <input
      className="input"
      type="search"
      aria-label={label}
      placeholder={placeholder ?? label}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

/** A filter with one of several values. */
export function ChoiceFilter({
  label,
  value,
  choices,
  onChange,
}: {
  label: string;
  value: string | undefined;
  choices: readonly Choice[];
  onChange: (value: string | undefined) => void;
}): ReactNode {
  return (
    <Select
      label={label}
      value={value ?? ""}
      choices={[{ value: "", label: `${label}: all` }, ...choices]}
      onChange={(next) => onChange(next || undefined)}
    />
  );
}

/** A filter with any number of values. */
export function ChoicesFilter({
  label,
  values,
  choices,
  onChange,
}: {
  label: string;
  values: readonly string[];
  choices: readonly Choice[];
  onChange: (values: string[]) => void;
}): ReactNode {
  const names = choices.filter(({ value }) => values.includes(value)).map((choice) => choice.label);
  return (
    <Menu trigger={<Button>{names.length === 0 ? label : `${label}: ${names.join(", ")}`}</Button>}>
      {choices.map((choice) => {
        const isChosen = values.includes(choice.value);
        return (
          <MenuChoice
            key={choice.value}
            isChosen={isChosen}
            onSelect={() =>
              onChange(isChosen ? values.filter((value) => value !== choice.value) : [...values, choice.value])
            }
          >
            {choice.label}
          </MenuChoice>
        );
      })}
    </Menu>
  );
}

/** A filter with a date, in UTC. */
export function DateFilter({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}): ReactNode {
  return (
    <label className="date-filter">
      {label}
      <input
        className="input"
        type="date"
        value={value?.slice(0, 10) ?? ""}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
    </label>
  );
}

/** Removes all filters. Hidden while there are none. */
export function ClearFilters({ isActive, onClear }: { isActive: boolean; onClear: () => void }): ReactNode {
  if (!isActive) return null;
  return (
    <Button look="quiet" onClick={onClear}>
      <X size={14} aria-hidden />
      Clear
    </Button>
  );
}
