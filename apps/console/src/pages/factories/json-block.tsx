import type { ReactNode } from "react";
import { CopyButton } from "../../ui/copy.tsx";
import { SafeText } from "../../ui/safe-text.tsx";

/** Shows a JSON value as text that can be copied. */
export function JsonBlock({ label, value }: { label: string; value: unknown }): ReactNode {
  const text = JSON.stringify(value, null, 2);
  return (
    <div className="stack">
      <span className="line">
        <strong>{label}</strong>
        <CopyButton text={text} label={label.toLowerCase()} />
      </span>
      <pre className="payload" tabIndex={0} role="region" aria-label={label}>
        <SafeText>{text}</SafeText>
      </pre>
    </div>
  );
}
