import type { ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";

type Invitation = components["schemas"]["Invitation"];

/** The open invitations of a team. */
export function TeamInvitations({ teamUid }: { teamUid: string }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const { data, error, refetch } = useQuery({
    queryKey: ["invitations", teamUid],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/team/{uid}/invitations", { params: { path: { uid: teamUid } }, signal })),
  });
  const revoke = useMutation({
    mutationFn: (invitationUid: string) =>
      api.DELETE("/api/v1/team/{uid}/invitations/{invitationUid}", {
        params: { path: { uid: teamUid, invitationUid } },
      }),
    onSuccess: () => toasts.success("The invitation is revoked."),
    onError: (failure: unknown) => toasts.failure(failure),
    onSettled: () => queries.invalidateQueries({ queryKey: ["invitations", teamUid] }),
  });
  return (
    <Card title="Invitations" actions={<CopyCommands path={`/team/${teamUid}/invitations`} />}>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {data?.invitations.length === 0 && <p className="soft">No open invitation. “Add member” invites people.</p>}
      {data && data.invitations.length > 0 && (
        <DataTable<Invitation>
          caption="Invitations of the team"
          rows={data.invitations}
          keyOf={({ uid }) => uid}
          columns={[
            { title: "E-mail", cell: ({ email }) => <SafeText>{email}</SafeText> },
            { title: "Role", cell: ({ role }) => role },
            { title: "Sent", cell: ({ created_at: at }) => <Time at={at} /> },
            { title: "Expires", cell: ({ expires_at: at }) => <Time at={at} /> },
            {
              title: "Actions",
              cell: ({ uid, email }) => (
                <span className="row-actions">
                  <Button
                    isSmall
                    look="danger"
                    aria-label={`Revoke the invitation of ${email}`}
                    disabled={revoke.isPending}
                    onClick={() => revoke.mutate(uid)}
                  >
                    Revoke
                  </Button>
                </span>
              ),
            },
          ]}
        />
      )}
    </Card>
  );
}

/** The invitations to the caller. Hidden if there are none, and for keys that cannot accept them. */
export function OwnInvitations(): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const { data } = useQuery({
    queryKey: ["invitations", "own"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/invitations", { signal })),
  });
  const settle = (): void => {
    void queries.invalidateQueries({ queryKey: ["invitations", "own"] });
    void queries.invalidateQueries({ queryKey: ["whoami"] });
  };
  const accept = useMutation({
    mutationFn: (invitationUid: string) =>
      dataOf(api.POST("/api/v1/invitations/{invitationUid}/accept", { params: { path: { invitationUid } } })),
    onSuccess: ({ team }) => toasts.success(`You are a member of ${team.name}. Switch to it at the upper left.`),
    onError: (failure: unknown) => toasts.failure(failure),
    onSettled: settle,
  });
  const decline = useMutation({
    mutationFn: (invitationUid: string) =>
      api.DELETE("/api/v1/invitations/{invitationUid}", { params: { path: { invitationUid } } }),
    onSuccess: () => toasts.success("The invitation is declined."),
    onError: (failure: unknown) => toasts.failure(failure),
    onSettled: settle,
  });
  if (!data || data.invitations.length === 0) return null;
  return (
    <Card title="You are invited" actions={<CopyCommands path="/invitations" cli="invitation list" />}>
      <DataTable<Invitation>
        caption="Your invitations"
        rows={data.invitations}
        keyOf={({ uid }) => uid}
        columns={[
          { title: "Team", cell: ({ team }) => <SafeText>{team.name}</SafeText> },
          { title: "Role", cell: ({ role }) => role },
          { title: "Expires", cell: ({ expires_at: at }) => <Time at={at} /> },
          {
            title: "Actions",
            cell: ({ uid, team }) => (
              <span className="row-actions">
                <Button
                  isSmall
                  look="primary"
                  aria-label={`Join ${team.name}`}
                  disabled={accept.isPending}
                  onClick={() => accept.mutate(uid)}
                >
                  Join
                </Button>
                <Button
                  isSmall
                  aria-label={`Decline ${team.name}`}
                  disabled={decline.isPending}
                  onClick={() => decline.mutate(uid)}
                >
                  Decline
                </Button>
              </span>
            ),
          },
        ]}
      />
    </Card>
  );
}
