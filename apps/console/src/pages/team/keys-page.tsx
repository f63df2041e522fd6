import { useState, type ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useMay, useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { ShownOnceDialog } from "../../ui/shown-once.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { CreateKeyDialog } from "./create-key-dialog.tsx";
import { ForTeam } from "./for-team.tsx";

type Key = components["schemas"]["ApiKey"];
type Open =
  | { readonly form: "create" }
  | { readonly form: "issued"; readonly name: string; readonly secret: string }
  | { readonly form: "revoke"; readonly key: Key };
const PAGE_SIZE = 50;
const MEMBERS_MAX = 100;

/** The API keys of the team, or the caller's own if they may not manage the team. */
export default function KeysPage(): ReactNode {
  return <ForTeam title="API keys">{({ uid }) => <Keys teamUid={uid} />}</ForTeam>;
}

function Keys({ teamUid }: { teamUid: string }): ReactNode {
  const { cursor } = getRouteApi("/keys").useSearch();
  const navigate = useNavigate({ from: "/keys" });
  const { me } = useSession();
  const mayManage = useMay("team.manage");
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  const { data: people } = useQuery({
    queryKey: ["members", teamUid, "names"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/team/{uid}/members", {
          params: { path: { uid: teamUid }, query: { limit: MEMBERS_MAX } },
          signal,
        }),
      ),
  });
  const ownerOf = ({ kind, user_uid: user, agent_uid: agent }: Key): ReactNode => {
    if (kind === "worker") return "Workers";
    if (user !== undefined) {
      const member = people?.members.find(({ uid }) => uid === user);
      return member ? <SafeText>{member.display_name || member.email}</SafeText> : <Id value={user} />;
    }
    return agent === undefined ? (
      "–"
    ) : (
      <>
        Agent <Id value={agent} />
      </>
    );
  };
  return (
    <Page
      title="API keys"
      subtitle={mayManage ? "The keys of the team." : "Your keys in the team."}
      actions={
        <>
          <Button
            look="primary"
            disabled={me.principal.type !== "user" && !mayManage}
            onClick={() => setOpen({ form: "create" })}
          >
            <Plus size={14} aria-hidden />
            Create key
          </Button>
          <CopyCommands path={`/team/${teamUid}/keys`} cli={`key list --team ${teamUid}`} />
        </>
      }
    >
      <ListView
        queryKey={["keys", teamUid]}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/team/{uid}/keys", {
              params: {
                path: { uid: teamUid },
                query: { limit: PAGE_SIZE, ...(at === undefined ? {} : { cursor: at }) },
              },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ keys }) => keys.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={<EmptyState title="No keys">Create a key for a script, an agent or workers.</EmptyState>}
      >
        {({ keys }) => (
          <DataTable<Key>
            caption="API keys"
            rows={keys}
            keyOf={({ uid }) => uid}
            columns={[
              {
                title: "Name",
                cell: ({ name }) => (
                  <span className="truncate">
                    <SafeText>{name}</SafeText>
                  </span>
                ),
              },
              { title: "Starts with", cell: ({ prefix }) => <code>{prefix}…</code> },
              { title: "Of", cell: ownerOf },
              { title: "Teams", cell: ({ all_teams: all }) => (all ? "All of the owner" : "This team") },
              {
                title: "Permissions",
                cell: ({ scopes, kind }) =>
                  scopes.length > 0 ? (
                    <span className="small">{scopes.join(", ")}</span>
                  ) : (
                    <span className="soft small">{kind === "worker" ? "Worker" : "All of the owner"}</span>
                  ),
              },
              { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
              { title: "Used", cell: ({ last_used_at: at }) => <Time at={at} /> },
              {
                title: "Expires",
                cell: ({ expires_at: at }) => (at ? <Time at={at} /> : <span className="soft">Never</span>),
              },
              {
                title: "Actions",
                cell: (key) => (
                  <span className="row-actions">
                    <Button
                      isSmall
                      look="danger"
                      aria-label={`Revoke ${key.name}`}
                      onClick={() => setOpen({ form: "revoke", key })}
                    >
                      Revoke
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </ListView>
      {open?.form === "create" && (
        <CreateKeyDialog
          teamUid={teamUid}
          onClose={close}
          onIssued={({ key: { name }, api_key: secret }) => setOpen({ form: "issued", name, secret })}
        />
      )}
      {open?.form === "issued" && (
        <ShownOnceDialog title="Key created" value={open.secret} onClose={close}>
          This is the key “<SafeText>{open.name}</SafeText>”.
        </ShownOnceDialog>
      )}
      {open?.form === "revoke" && <RevokeKeyDialog teamUid={teamUid} apiKey={open.key} onClose={close} />}
    </Page>
  );
}

type RevokeProps = { readonly teamUid: string; readonly apiKey: Key; readonly onClose: () => void };

function RevokeKeyDialog({ teamUid, apiKey: { uid, name }, onClose }: RevokeProps): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const revoke = useMutation({
    mutationFn: () =>
      api.DELETE("/api/v1/team/{uid}/keys/{keyUid}", { params: { path: { uid: teamUid, keyUid: uid } } }),
    onSuccess: () => {
      toasts.success("The key is revoked.");
      void queries.invalidateQueries({ queryKey: ["keys", teamUid] });
      onClose();
    },
  });
  return (
    <FormDialog
      title="Revoke key"
      action="Revoke"
      isDanger
      isPending={revoke.isPending}
      error={revoke.error}
      onSubmit={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>
        “<SafeText>{name}</SafeText>” stops working immediately, also in consoles that are signed in with it. A revoked
        key cannot be restored.
      </p>
    </FormDialog>
  );
}
