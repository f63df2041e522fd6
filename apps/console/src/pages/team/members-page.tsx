import { useState, type ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { UserPlus } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useMay, useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { ShownOnceDialog } from "../../ui/shown-once.tsx";
import { Time } from "../../ui/time.tsx";
import { ForTeam } from "./for-team.tsx";
import { OwnInvitations, TeamInvitations } from "./invitations.tsx";
import { AddMemberDialog, ChangeRoleDialog, RemoveMemberDialog } from "./member-dialogs.tsx";

type Member = components["schemas"]["Member"];
type Open =
  | { readonly form: "add" }
  | { readonly form: "added"; readonly email: string; readonly secret: string }
  | { readonly form: "role" | "remove"; readonly member: Member };
const PAGE_SIZE = 50;

/** The members of the team, its invitations, and the caller's own invitations. */
export default function MembersPage(): ReactNode {
  return <ForTeam title="Members">{({ uid }) => <Members teamUid={uid} />}</ForTeam>;
}

function Members({ teamUid }: { teamUid: string }): ReactNode {
  const { cursor } = getRouteApi("/members").useSearch();
  const navigate = useNavigate({ from: "/members" });
  const { me } = useSession();
  const mayManage = useMay("team.manage");
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  return (
    <Page
      title="Members"
      subtitle="A role decides what a member's keys may do in the team."
      actions={
        <>
          <Button look="primary" disabled={!mayManage} onClick={() => setOpen({ form: "add" })}>
            <UserPlus size={14} aria-hidden />
            Add member
          </Button>
          <CopyCommands path={`/team/${teamUid}/members`} cli={`user list --team ${teamUid}`} />
        </>
      }
    >
      <OwnInvitations />
      <ListView
        queryKey={["members", teamUid]}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/team/{uid}/members", {
              params: {
                path: { uid: teamUid },
                query: { limit: PAGE_SIZE, ...(at === undefined ? {} : { cursor: at }) },
              },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ members }) => members.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={<EmptyState title="No members">Add the first person of the team.</EmptyState>}
      >
        {({ members }) => (
          <DataTable<Member>
            caption="Members"
            rows={members}
            keyOf={({ uid }) => uid}
            columns={[
              {
                title: "Name",
                cell: ({ uid, display_name: name }) => (
                  <>
                    <SafeText>{name || "–"}</SafeText>
                    {uid === me.principal.uid && <span className="soft small"> (you)</span>}
                  </>
                ),
              },
              { title: "E-mail", cell: ({ email }) => <SafeText>{email}</SafeText> },
              { title: "Role", cell: ({ role }) => role },
              { title: "Since", cell: ({ created_at: at }) => <Time at={at} /> },
              {
                title: "Actions",
                cell: (member) =>
                  mayManage && (
                    <span className="row-actions">
                      <Button
                        isSmall
                        aria-label={`Change role of ${member.email}`}
                        onClick={() => setOpen({ form: "role", member })}
                      >
                        Change role
                      </Button>
                      <Button
                        isSmall
                        look="danger"
                        aria-label={`Remove ${member.email}`}
                        onClick={() => setOpen({ form: "remove", member })}
                      >
                        Remove
                      </Button>
                    </span>
                  ),
              },
            ]}
          />
        )}
      </ListView>
      {mayManage && <TeamInvitations teamUid={teamUid} />}
      {open?.form === "add" && (
        <AddMemberDialog
          teamUid={teamUid}
          onClose={close}
          onAdded={({ email, api_key: secret }) => setOpen({ form: "added", email, secret })}
        />
      )}
      {open?.form === "added" && (
        <ShownOnceDialog title="Member added" value={open.secret} onClose={close}>
          Give this first key to <SafeText>{open.email}</SafeText>, who signs in with it.
        </ShownOnceDialog>
      )}
      {open?.form === "role" && <ChangeRoleDialog teamUid={teamUid} member={open.member} onClose={close} />}
      {open?.form === "remove" && <RemoveMemberDialog teamUid={teamUid} member={open.member} onClose={close} />}
    </Page>
  );
}
