import type { ButtonHTMLAttributes, ReactNode } from "react";

type Look = "default" | "primary" | "danger" | "quiet";
type Props = ButtonHTMLAttributes<HTMLButtonElement> & { look?: Look; isSmall?: boolean; isIcon?: boolean };

/** A button. An icon button needs an `aria-label`. */
export function Button({ look = "default", isSmall, isIcon, className, type = "button", ...rest }: Props): ReactNode {
  const names = ["button", look, isSmall && "small", isIcon && "icon", className].filter(Boolean).join(" ");
  return <button type={type} className={names} {...rest} />;
}
