import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

/** Shows a credential that the platform does not return again. */
export function ShownOnceDialog({
  title,
  value,
  noun = "key",
  children,
  onClose,
}: {
  title: string;
  value: string;
  /** What the credential is. */
  noun?: "key" | "secret";
  children: ReactNode;
  onClose: () => void;
}): ReactNode {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="body">
        <p>{children}</p>
        <p className="shown-once">
          <code>{value}</code> <CopyButton text={value} label={noun} />
        </p>
        <p className="soft small">The {noun} is not shown again. Store it now.</p>
      </div>
      <footer>
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </footer>
    </Dialog>
  );
}
