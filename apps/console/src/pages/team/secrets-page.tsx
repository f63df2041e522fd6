import { useState, type ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { ForTeam } from "./for-team.tsx";

type Secret = components["schemas"]["ManagedSecret"];
type Open = { readonly form: "set"; readonly name?: string } | { readonly form: "delete"; readonly name: string };
const PAGE_SIZE = 50;

/** The secrets of the team: names and versions. The platform never returns a value. */
export default function SecretsPage(): ReactNode {
  return (
    <ForTeam title="Secrets" permission="secret.manage">
      {({ uid }) => <Secrets teamUid={uid} />}
    </ForTeam>
  );
}

function Secrets({ teamUid }: { teamUid: string }): ReactNode {
  const { cursor } = getRouteApi("/secrets").useSearch();
  const navigate = useNavigate({ from: "/secrets" });
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  return (
    <Page
      title="Secrets"
      subtitle="Values are encrypted and never shown. Agents and environments name a secret to receive it."
      actions={
        <>
          <Button look="primary" onClick={() => setOpen({ form: "set" })}>
            <Plus size={14} aria-hidden />
            Add secret
          </Button>
          <CopyCommands path={`/team/${teamUid}/secrets`} cli={`secret list --team ${teamUid}`} />
        </>
      }
    >
      <ListView
        queryKey={["secrets", teamUid]}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/team/{uid}/secrets", {
              params: {
                path: { uid: teamUid },
                query: { limit: PAGE_SIZE, ...(at === undefined ? {} : { cursor: at }) },
              },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ secrets }) => secrets.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          <EmptyState title="No secrets yet">
            Add a token that runs need, then name it in <code>secrets</code> of an environment or an agent.
          </EmptyState>
        }
      >
        {({ secrets }) => (
          <DataTable<Secret>
            caption="Secrets"
            rows={secrets}
            keyOf={({ name }) => name}
            columns={[
              { title: "Name", cell: ({ name }) => <code>{name}</code> },
              { title: "Version", isNumber: true, cell: ({ version }) => version },
              { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
              { title: "Changed", cell: ({ updated_at: at }) => <Time at={at} /> },
              {
                title: "Actions",
                cell: ({ name }) => (
                  <span className="row-actions">
                    <Button isSmall aria-label={`Replace ${name}`} onClick={() => setOpen({ form: "set", name })}>
                      Replace
                    </Button>
                    <Button
                      isSmall
                      look="danger"
                      aria-label={`Delete ${name}`}
                      onClick={() => setOpen({ form: "delete", name })}
                    >
                      Delete
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </ListView>
      {open?.form === "set" && <SetSecretDialog teamUid={teamUid} name={open.name} onClose={close} />}
      {open?.form === "delete" && <DeleteSecretDialog teamUid={teamUid} name={open.name} onClose={close} />}
    </Page>
  );
}

type DialogProps = { readonly teamUid: string; readonly onClose: () => void };

/** Stores the value of a secret: of a new one, or a new version of the named one. */
function SetSecretDialog({ teamUid, name: existing, onClose }: DialogProps & { name: string | undefined }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const [name, setName] = useState(existing ?? "");
  const [value, setValue] = useState("");
  const store = useMutation({
    mutationFn: async () => {
      if (existing === undefined)
        // refuses a name that exists, so that no value is replaced by accident
        await api.POST("/api/v1/team/{uid}/secrets", {
          params: { path: { uid: teamUid } },
          body: { name: name.trim(), value },
        });
      else
        await api.PUT("/api/v1/team/{uid}/secrets/{name}", {
          params: { path: { uid: teamUid, name: existing } },
          body: { value },
        });
    },
    onSuccess: () => {
      toasts.success(existing === undefined ? `Secret ${name.trim()} is stored.` : `Secret ${existing} is replaced.`);
      void queries.invalidateQueries({ queryKey: ["secrets", teamUid] });
      onClose();
    },
  });
  return (
    <FormDialog
      title={existing === undefined ? "Add secret" : `Replace ${existing}`}
      action="Store"
      isPending={store.isPending}
      error={store.error}
      onSubmit={() => store.mutate()}
      onClose={onClose}
    >
      {existing === undefined && (
        <TextField label="Name" isMono required value={name} onChange={setName} placeholder="GITHUB_TOKEN" />
      )}
      <TextField label="Value" isMono type="password" autoComplete="off" required value={value} onChange={setValue} />
      <p className="soft small">
        The value cannot be read again. For a value with line breaks use{" "}
        <code>npx millwright secret set NAME &lt; file</code>.
      </p>
    </FormDialog>
  );
}

function DeleteSecretDialog({ teamUid, name, onClose }: DialogProps & { name: string }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/team/{uid}/secrets/{name}", { params: { path: { uid: teamUid, name } } }),
    onSuccess: () => {
      toasts.success(`Secret ${name} is deleted.`);
      void queries.invalidateQueries({ queryKey: ["secrets", teamUid] });
      onClose();
    },
  });
  return (
    <FormDialog
      title="Delete secret"
      action="Delete"
      isDanger
      isPending={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        Runs that name <SafeText>{name}</SafeText> cannot start without it. The value cannot be restored.
      </p>
    </FormDialog>
  );
}
