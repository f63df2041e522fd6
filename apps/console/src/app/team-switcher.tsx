import type { ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useQueryClient } from "@tanstack/react-query";
import { ChevronsUpDown } from "lucide-react";
import { activeTeam } from "../api/active-team.ts";
import { Button } from "../ui/button.tsx";
import { Menu, MenuChoice, MenuLabel } from "../ui/menu.tsx";
import { useSession } from "./session.tsx";

/** Selects the team that every request of the console acts in. */
export function TeamSwitcher(): ReactNode {
  const { me, team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const choose = (uid: string): void => {
    if (uid === team?.uid) return;
    activeTeam.set(uid);
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "whoami" });
    void navigate({ to: "/" });
  };
  return (
    <Menu
      trigger={
        <Button className="team-button">
          {team?.name ?? "Personal"}
          <ChevronsUpDown size={14} aria-hidden />
        </Button>
      }
    >
      <MenuLabel>Teams</MenuLabel>
      {me.teams.map(({ uid, name, role }) => (
        <MenuChoice key={uid} isChosen={uid === team?.uid} onSelect={() => choose(uid)}>
          {name} {role !== undefined && <span className="soft small">{role}</span>}
        </MenuChoice>
      ))}
    </Menu>
  );
}
