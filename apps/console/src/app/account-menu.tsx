import { useSyncExternalStore, type ReactNode } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { LogOut, UserRound } from "lucide-react";
import { activeTeam } from "../api/active-team.ts";
import { signOut } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuSeparator } from "../ui/menu.tsx";
import { useToasts } from "../ui/toasts.tsx";
import { useSession } from "./session.tsx";
import { theme } from "./theme.ts";

const THEMES = [
  [undefined, "System"],
  ["light", "Light"],
  ["dark", "Dark"],
] as const;

/** Who is signed in, the theme, links to the documentation, and signing out. */
export function AccountMenu(): ReactNode {
  const { me } = useSession();
  const queries = useQueryClient();
  const toasts = useToasts();
  const chosen = useSyncExternalStore(theme.subscribe, theme.get);
  const leave = async (): Promise<void> => {
    try {
      await signOut();
      activeTeam.set(undefined);
      await queries.resetQueries();
    } catch (error) {
      toasts.failure(error);
    }
  };
  const { display_name: name, email, uid } = me.principal;
  return (
    <Menu
      trigger={
        <Button look="quiet" className="team-button">
          <span className="truncate">{name ?? email ?? uid}</span>
          <UserRound size={14} aria-hidden />
        </Button>
      }
    >
      {email !== undefined && <MenuLabel>{email}</MenuLabel>}
      <MenuLabel>Theme</MenuLabel>
      {THEMES.map(([value, label]) => (
        <MenuChoice key={label} isChosen={chosen === value} onSelect={() => theme.set(value)}>
          {label}
        </MenuChoice>
      ))}
      <MenuSeparator />
      <MenuItem onSelect={() => window.open("/docs", "_blank", "noopener")}>API reference</MenuItem>
      <MenuItem onSelect={() => void leave()}>
        <LogOut size={14} aria-hidden />
        Sign out
      </MenuItem>
    </Menu>
  );
}
