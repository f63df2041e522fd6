import type { ReactNode } from "react";
import { useMay, useSession, type Permission } from "../../app/session.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";

type Team = NonNullable<ReturnType<typeof useSession>["team"]>;

/** Shows a page of the active team, or why the caller cannot see it. */
export function ForTeam({
  title,
  permission,
  children,
}: {
  title: string;
  /** What reading the page needs. Absent: membership. */
  permission?: Permission;
  children: (team: Team) => ReactNode;
}): ReactNode {
  const { team } = useSession();
  const isPermitted = useMay(permission ?? "run.view");
  if (team && (permission === undefined || isPermitted)) return children(team);
  return (
    <Page title={title}>
      {team ? (
        <EmptyState title={`Your key may not read this page`}>
          It needs the permission <code>{permission}</code> in {team.name}. Ask an owner or admin of the team, or sign
          in with another key.
        </EmptyState>
      ) : (
        <EmptyState title="You are in no team">
          Ask an owner or admin of a team to invite you. A platform administrator creates a team with{" "}
          <code>npx millwright team create NAME</code>.
        </EmptyState>
      )}
    </Page>
  );
}
