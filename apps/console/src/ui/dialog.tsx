import { useEffect, useId, useRef, type ReactNode } from "react";
import { X } from "lucide-react";
import { Button } from "./button.tsx";

type Props = {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly className?: string;
  /** Hides the title visually, for dialogs that consist of one input. */
  readonly isBare?: boolean;
};

/** Fields that a dialog focuses when it opens. React's `autoFocus` has no effect, because it runs before `showModal`. */
const FIELD = "input:enabled, select:enabled, textarea:enabled";

/**
 * A modal dialog, open while it is rendered. Focuses its first field. The native element traps focus, closes on Escape
 * and returns focus; if the page with the earlier focus is gone, the focus moves to the content.
 */
export function Dialog({ title, onClose, children, className, isBare }: Props): ReactNode {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    dialog.querySelector<HTMLElement>(FIELD)?.focus();
    return () => {
      dialog.close();
      if (document.activeElement === document.body) document.querySelector<HTMLElement>("#content")?.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      className={["dialog", className].filter(Boolean).join(" ")}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === element.current && onClose()}
    >
      {isBare ? (
        <h2 id={titleId} className="visually-hidden">
          {title}
        </h2>
      ) : (
        <header>
          <h2 id={titleId}>{title}</h2>
          <Button look="quiet" isIcon isSmall aria-label="Close" onClick={onClose}>
            <X size={15} aria-hidden />
          </Button>
        </header>
      )}
      {children}
    </dialog>
  );
}
