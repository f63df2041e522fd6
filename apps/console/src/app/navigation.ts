import { CalendarClock, Factory, Play, SquareKanban, type LucideIcon } from "lucide-react";
import type { LinkProps } from "@tanstack/react-router";

export type NavigationEntry = { readonly label: string; readonly to: LinkProps["to"]; readonly icon: LucideIcon };
export type NavigationGroup = { readonly label?: string; readonly entries: readonly NavigationEntry[] };

/** What the sidebar and the command palette list, in order. */
export const NAVIGATION: readonly NavigationGroup[] = [
  {
    entries: [
      { label: "Work", to: "/work", icon: SquareKanban },
      { label: "Runs", to: "/runs", icon: Play },
      { label: "Factories", to: "/factories", icon: Factory },
      { label: "Schedules", to: "/schedules", icon: CalendarClock },
    ],
  },
];
