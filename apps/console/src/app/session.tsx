import { createContext, useContext, useEffect, useSyncExternalStore, type ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { activeTeam } from "../api/active-team.ts";
import { viewToken } from "../api/client.ts";
import { ApiError } from "../api/problem.ts";
import { whoAmI } from "../api/queries.ts";
import type { components } from "../gen/api.ts";
import { SignInPage } from "./sign-in-page.tsx";
import { ErrorView } from "../ui/error-view.tsx";

export type WhoAmI = components["schemas"]["WhoAmI"];
export type Permission = WhoAmI["personal_permissions"][number];
type Team = WhoAmI["teams"][number];
type Session = {
  readonly me: WhoAmI;
  readonly team: Team | undefined;
  /** The reader has no session and views one run by its session link. */
  readonly isLinkViewer: boolean;
};

const LINK_VIEWER: Session = {
  me: {
    principal: { type: "user", uid: "link" },
    platform_admin: false,
    teams: [],
    personal_permissions: ["run.view"],
  },
  team: undefined,
  isLinkViewer: true,
};

const Context = createContext<Session | undefined>(undefined);

/** Shows its children to a signed-in principal or to the reader of a session link, and the sign-in page to others. */
export function SessionBoundary({ children }: { children: ReactNode }): ReactNode {
  const { data: me, error } = useQuery(whoAmI);
  const stored = useSyncExternalStore(activeTeam.subscribe, activeTeam.get);
  const team = me?.teams.find(({ uid }) => uid === stored) ?? me?.teams[0];
  useEffect(() => {
    if (me && team?.uid !== stored) activeTeam.set(team?.uid);
  }, [me, team, stored]);
  const isSignedOut = error instanceof ApiError && error.status === 401;
  if (isSignedOut && viewToken() !== undefined)
    return <Context.Provider value={LINK_VIEWER}>{children}</Context.Provider>;
  if (isSignedOut) return <SignInPage problem={error.problem.reason === "credential_missing" ? undefined : error} />;
  if (error && !me) return <ErrorView error={error} />;
  if (!me) return <p className="visually-hidden">Loading…</p>;
  if (team?.uid !== stored) return null; // requests of pages must name the team
  return <Context.Provider value={{ me, team, isLinkViewer: false }}>{children}</Context.Provider>;
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
