import { createContext, useContext, useEffect, useSyncExternalStore, type ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { activeTeam } from "../api/active-team.ts";
import { ApiError } from "../api/problem.ts";
import { whoAmI } from "../api/queries.ts";
import type { components } from "../gen/api.ts";
import { SignInPage } from "./sign-in-page.tsx";
import { ErrorView } from "../ui/error-view.tsx";

export type WhoAmI = components["schemas"]["WhoAmI"];
export type Permission = WhoAmI["personal_permissions"][number];
type Team = WhoAmI["teams"][number];
type Session = { readonly me: WhoAmI; readonly team: Team | undefined };

const Context = createContext<Session | undefined>(undefined);

/** Shows its children to a signed-in principal, and the sign-in page to everyone else. */
export function SessionBoundary({ children }: { children: ReactNode }): ReactNode {
  const { data: me, error } = useQuery(whoAmI);
  const stored = useSyncExternalStore(activeTeam.subscribe, activeTeam.get);
  const team = me?.teams.find(({ uid }) => uid === stored) ?? me?.teams[0];
  useEffect(() => {
    if (me && team?.uid !== stored) activeTeam.set(team?.uid);
  }, [me, team, stored]);
  if (error instanceof ApiError && error.status === 401)
    return <SignInPage problem={error.problem.reason === "credential_missing" ? undefined : error} />;
  if (error && !me) return <ErrorView error={error} />;
  if (!me) return <p className="visually-hidden">Loading…</p>;
  if (team?.uid !== stored) return null; // requests of pages must name the team
  return <Context.Provider value={{ me, team }}>{children}</Context.Provider>;
}

/** Returns the signed-in principal and the active team. Only below `SessionBoundary`. */
export function useSession(): Session {
  const session = useContext(Context);
  if (!session) throw new Error("useSession needs SessionBoundary.");
  return session;
}

/** Returns whether the caller has a permission in the active team. The API checks it again. */
export function useMay(permission: Permission): boolean {
  const { me, team } = useSession();
  return (team?.permissions ?? me.personal_permissions).includes(permission);
}
