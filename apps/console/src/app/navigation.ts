import {
  Bell,
  Box,
  Brain,
  CalendarClock,
  ChartLine,
  CircleDollarSign,
  Factory,
  FileClock,
  Files,
  FlaskConical,
  GitPullRequest,
  KeyRound,
  LockKeyhole,
  PiggyBank,
  Play,
  Scale,
  Server,
  Settings,
  SquareKanban,
  Users,
  type LucideIcon,
} from "lucide-react";
import type { LinkProps } from "@tanstack/react-router";

export type NavigationEntry = { readonly label: string; readonly to: LinkProps["to"]; readonly icon: LucideIcon };
export type NavigationGroup = { readonly label?: string; readonly entries: readonly NavigationEntry[] };

/** What the sidebar and the command palette list, in order. */
export const NAVIGATION: readonly NavigationGroup[] = [
  {
    entries: [
      { label: "Work", to: "/work", icon: SquareKanban },
      { label: "Runs", to: "/runs", icon: Play },
      { label: "Artifacts", to: "/artifacts", icon: Files },
      { label: "Factories", to: "/factories", icon: Factory },
      { label: "Schedules", to: "/schedules", icon: CalendarClock },
      { label: "Waiting", to: "/waiting", icon: Bell },
    ],
  },
  {
    label: "Platform",
    entries: [
      { label: "Workers", to: "/workers", icon: Server },
      { label: "Environments", to: "/environments", icon: Box },
      { label: "Models and prices", to: "/models", icon: Brain },
    ],
  },
  {
    label: "Team",
    entries: [
      { label: "Secrets", to: "/secrets", icon: LockKeyhole },
      { label: "API keys", to: "/keys", icon: KeyRound },
      { label: "Members", to: "/members", icon: Users },
      { label: "Audit log", to: "/audit", icon: FileClock },
      { label: "Team settings", to: "/settings", icon: Settings },
    ],
  },
  {
    label: "Insight",
    entries: [
      { label: "Metrics", to: "/activity", icon: ChartLine },
      { label: "Costs", to: "/costs", icon: CircleDollarSign },
      { label: "Pull requests", to: "/pull-requests", icon: GitPullRequest },
      { label: "Budgets", to: "/budgets", icon: PiggyBank },
      { label: "Scorers", to: "/scorers", icon: Scale },
      { label: "Benchmarks", to: "/benchmarks", icon: FlaskConical },
    ],
  },
];
