import type { ComponentProps, ReactNode } from "react";

type Props = Omit<ComponentProps<"input">, "className" | "onChange"> & {
  readonly label: string;
  readonly onChange: (text: string) => void;
  /** Shows the text with characters of equal width. */
  readonly isMono?: boolean;
};

/** A labelled input of one line. */
export const TextField = ({ label, onChange, isMono, ...input }: Props): ReactNode => (
  <label className="field">
    <span>{label}</span>
    <input {...input} className={isMono ? "input mono" : "input"} onChange={(event) => onChange(event.target.value)} />
  </label>
);
