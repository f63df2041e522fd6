import type { ReactNode } from "react";
import { visibleText } from "./safe-text.tsx";

export type Choice<Value extends string = string> = { readonly value: Value; readonly label: string };

type Props<Value extends string> = {
  readonly label: string;
  readonly value: Value;
  readonly choices: readonly Choice<Value>[];
  readonly onChange: (value: Value) => void;
  readonly required?: boolean;
};

/** A choice of one value among filters and buttons. Only screen readers get its label. */
export const Select = <Value extends string>({ label, ...props }: Props<Value>): ReactNode => (
  <Control {...props} ariaLabel={label} />
);

/** A choice of one value in a form, with its label above it. */
export const SelectField = <Value extends string>({ label, ...props }: Props<Value>): ReactNode => (
  <label className="field">
    <span>{label}</span>
    <Control {...props} />
  </label>
);

const Control = <Value extends string>({
  value,
  choices,
  onChange,
  required,
  ariaLabel,
}: Omit<Props<Value>, "label"> & { readonly ariaLabel?: string }): ReactNode => (
  <select
    className="select"
    aria-label={ariaLabel}
    required={required}
    value={value}
    onChange={(event) => onChange(event.target.value as Value)}
  >
    {choices.map((choice) => (
      <option key={choice.value} value={choice.value}>
        {visibleText(choice.label)}
      </option>
    ))}
  </select>
);

/** Returns the choices and the chosen value, which is its own label if it is none of them. */
export const withChosen = (choices: readonly Choice[], chosen: string | undefined): readonly Choice[] =>
  !chosen || choices.some(({ value }) => value === chosen) ? choices : [...choices, { value: chosen, label: chosen }];

/** Returns choices with the values and labels of a record, in its order. */
export const choicesOf = <Value extends string>(labels: Readonly<Record<Value, string>>): Choice<Value>[] =>
  (Object.entries(labels) as [Value, string][]).map(([value, label]) => ({ value, label }));
