import type { ReactElement, ReactNode } from "react";
import { Tooltip as Radix } from "radix-ui";

export const TooltipProvider = Radix.Provider;

/** Shows a short text on hover and focus of its only child, which must be focusable to be reachable by keyboard. */
export function Tooltip({ text, children }: { text: ReactNode; children: ReactElement }): ReactNode {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="tooltip" sideOffset={5}>
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
