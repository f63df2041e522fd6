import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { Bell } from "lucide-react";
import { useWaiting } from "../api/waiting.ts";

const COUNT_MAX = 99;

/** The number of things that wait for a person, as a link to their list. */
export function WaitingLink(): ReactNode {
  const { count } = useWaiting();
  return (
    <Link
      to="/waiting"
      className="button small waiting-link"
      aria-label={count === 0 ? "Nothing waits for you" : `${count} waiting for you`}
    >
      <Bell size={13} aria-hidden />
      {count > 0 && <span>{count > COUNT_MAX ? `${COUNT_MAX}+` : count}</span>}
    </Link>
  );
}
