import { useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { Card, Facts, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { EnvironmentDialog } from "./environment-dialog.tsx";
import { environmentName } from "./environment-name.ts";

type Environment = components["schemas"]["Environment"];
type Grant = components["schemas"]["EnvironmentGrant"];

/** One environment: its configuration, last run and grants. */
export default function EnvironmentPage(): ReactNode {
  const { uid } = getRouteApi("/environments/$uid").useParams();
  const mayManage = useMay("run.manage");
  const [open, setOpen] = useState<"edit" | "delete">();
  const { data, error, refetch } = useQuery({
    queryKey: ["environment", uid],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/environments/{uid}", { params: { path: { uid } }, signal })),
  });
  if (!data)
    return (
      <Page title="Environment">
        {error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>}
      </Page>
    );
  const mayChange = mayManage && data.access === "owned";
  return (
    <Page
      title={environmentName(data)}
      subtitle={data.config.description ? <SafeText>{data.config.description}</SafeText> : undefined}
      actions={
        <>
          <Button disabled={!mayChange} onClick={() => setOpen("edit")}>
            Edit
          </Button>
          <Button look="danger" disabled={!mayChange} onClick={() => setOpen("delete")}>
            Delete
          </Button>
          <CopyCommands path={`/agent/environments/${uid}`} cli="environment list" />
        </>
      }
    >
      {data.setup_failed && (
        <p className="notice bad">The setup of the last run failed. Open the run to see the command and its output.</p>
      )}
      <Card title="Configuration">
        <Configuration environment={data} />
      </Card>
      {mayChange && <Grants uid={uid} />}
      {open === "edit" && <EnvironmentDialog environment={data} onClose={() => setOpen(undefined)} />}
      {open === "delete" && <DeleteEnvironmentDialog environment={data} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}

function Configuration({ environment }: { environment: Environment }): ReactNode {
  const { uid, config, last_task_created: run, last_updated: at, access, link_sharing: isShared } = environment;
  const list = (values: readonly string[] | undefined): ReactNode =>
    values && values.length > 0 ? <SafeText>{values.join(", ")}</SafeText> : undefined;
  return (
    <Facts
      entries={[
        ["Id", <Id key="id" value={uid} isFull />],
        ["Image", config.docker_image && <SafeText key="image">{config.docker_image}</SafeText>],
        ["Repositories", list(config.github_repos?.map(({ owner, repo }) => `${owner}/${repo}`))],
        [
          "Setup commands",
          config.setup_commands && config.setup_commands.length > 0 ? (
            <code key="setup" className="multi-line">
              <SafeText>{config.setup_commands.join("\n")}</SafeText>
            </code>
          ) : undefined,
        ],
        ["Secrets", list(config.secrets?.map(({ name }) => name))],
        ["Allowed hosts", list(config.allowed_hosts)],
        [
          "Failed setups are retained",
          config.failure_session_retention_minutes ? `${config.failure_session_retention_minutes} minutes` : undefined,
        ],
        [
          "Last run",
          run && (
            <span key="run">
              <Link to="/runs/$runId" params={{ runId: run.id }}>
                <SafeText>{run.title}</SafeText>
              </Link>{" "}
              <StateBadge state={run.state} />
            </span>
          ),
        ],
        [
          "Runs",
          <Link key="runs" to="/runs" search={{ environment_id: uid }}>
            All runs in this environment
          </Link>,
        ],
        ["Access", isShared ? `${access}, shared by link` : access],
        ["Changed", <Time key="changed" at={at} />],
      ]}
    />
  );
}

function Grants({ uid }: { uid: string }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const { data, error, refetch } = useQuery({
    queryKey: ["environment", uid, "grants"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/environments/{uid}/grants", { params: { path: { uid } }, signal })),
  });
  const revoke = useMutation({
    mutationFn: (grantUid: string) =>
      api.DELETE("/api/v1/agent/environments/{uid}/grants/{grant_uid}", {
        params: { path: { uid, grant_uid: grantUid } },
      }),
    onSuccess: () => toasts.success("The grant is revoked. Existing runs continue."),
    onError: (failure: unknown) => toasts.failure(failure),
    onSettled: () => queries.invalidateQueries({ queryKey: ["environment", uid, "grants"] }),
  });
  return (
    <Card title="Shared with" actions={<CopyCommands path={`/agent/environments/${uid}/grants`} />}>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {data?.grants.length === 0 && (
        <p className="soft">
          No other team or user. Share it with <code>npx millwright environment share</code>.
        </p>
      )}
      {data && data.grants.length > 0 && (
        <DataTable<Grant>
          caption="Grants"
          rows={data.grants}
          keyOf={({ uid: grant }) => grant}
          columns={[
            {
              title: "Granted to",
              cell: ({ team_uid: team, user_uid: user }) => (
                <>
                  {team === undefined ? "User" : "Team"} <Id value={team ?? user ?? ""} />
                </>
              ),
            },
            { title: "Since", cell: ({ created_at: at }) => <Time at={at} /> },
            {
              title: "Actions",
              cell: ({ uid: grant }) => (
                <span className="row-actions">
                  <Button
                    isSmall
                    look="danger"
                    aria-label={`Revoke grant ${grant}`}
                    disabled={revoke.isPending}
                    onClick={() => revoke.mutate(grant)}
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

function DeleteEnvironmentDialog({
  environment,
  onClose,
}: {
  environment: Environment;
  onClose: () => void;
}): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/agent/environments/{uid}", { params: { path: { uid: environment.uid } } }),
    onSuccess: () => {
      toasts.success("The environment is deleted.");
      void queries.invalidateQueries({ queryKey: ["environments"] });
      void navigate({ to: "/environments" });
    },
  });
  return (
    <FormDialog
      title="Delete environment"
      action="Delete"
      isDanger
      isPending={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        “<SafeText>{environmentName(environment)}</SafeText>” is deleted. Agents and schedules that name it cannot start
        runs.
      </p>
    </FormDialog>
  );
}
