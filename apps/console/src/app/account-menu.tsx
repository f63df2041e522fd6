import { useSyncExternalStore, type ReactNode } from "react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link2, LogOut, UserRound } from "lucide-react";
import { activeTeam } from "../api/active-team.ts";
import { signOut } from "../api/client.ts";
import { signInOptions } from "../api/queries.ts";
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
  const provider = useQuery(signInOptions).data?.provider;
  const leave = async (isEverywhere: boolean): Promise<void> => {
    try {
      await signOut({ isEverywhere });
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
      {provider && (
        <MenuItem onSelect={() => location.assign(`${provider.path}?connect=true`)}>
          <Link2 size={14} aria-hidden />
          Connect {provider.label}
        </MenuItem>
      )}
      <MenuItem onSelect={() => void leave(false)}>
        <LogOut size={14} aria-hidden />
        Sign out
      </MenuItem>
      <MenuItem onSelect={() => void leave(true)}>
        <LogOut size={14} aria-hidden />
        Sign out everywhere
      </MenuItem>
    </Menu>
  );
}
