import type { FormEvent, KeyboardEvent, ReactNode } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorView } from "./error-view.tsx";

type Props = {
  readonly title: string;
  /** Text of the button that submits. */
  readonly action: string;
  readonly isDanger?: boolean;
  readonly isPending: boolean;
  /** Whether the input is incomplete, so that it cannot be submitted. */
  readonly isInvalid?: boolean;
  readonly error: unknown;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
};

/** A dialog with one form, or with a question whose answer is the action. Ctrl-Enter submits it. */
export function FormDialog({
  title,
  action,
  isDanger,
  isPending,
  isInvalid,
  error,
  onSubmit,
  onClose,
  children,
}: Props): ReactNode {
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSubmit();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLFormElement>): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (!isPending && !isInvalid) event.currentTarget.requestSubmit();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit} onKeyDown={onKeyDown}>
        <div className="body">{children}</div>
        <div className="dialog-end">
          {error ? <ErrorView error={error} /> : null}
          <footer>
            <Button onClick={onClose}>Cancel</Button>
            <Button look={isDanger ? "danger" : "primary"} type="submit" disabled={isPending || isInvalid}>
              {action}
            </Button>
          </footer>
        </div>
      </form>
    </Dialog>
  );
}
