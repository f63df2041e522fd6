import type { ReactElement, ReactNode } from "react";
import { DropdownMenu as Radix } from "radix-ui";

/**
 * A menu that its only child opens. It is not modal: a modal menu would inject a style element, which the content
 * security policy forbids.
 */
export function Menu({ trigger, children }: { trigger: ReactElement; children: ReactNode }): ReactNode {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="menu" sideOffset={5} align="start">
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export function MenuItem({ onSelect, children }: { onSelect: () => void; children: ReactNode }): ReactNode {
  return <Radix.Item onSelect={onSelect}>{children}</Radix.Item>;
}

/** One of several exclusive choices. */
export function MenuChoice({
  isChosen,
  onSelect,
  children,
}: {
  isChosen: boolean;
  onSelect: () => void;
  children: ReactNode;
}): ReactNode {
  return (
    <Radix.CheckboxItem checked={isChosen} onSelect={onSelect}>
      <span aria-hidden>{isChosen ? "✓" : "\u2007"}</span>
      {children}
    </Radix.CheckboxItem>
  );
}

export const MenuLabel = ({ children }: { children: ReactNode }): ReactNode => (
  <Radix.Label className="label">{children}</Radix.Label>
);
export const MenuSeparator = (): ReactNode => <Radix.Separator className="separator" />;
