import { useState, type FormEvent, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { Diagnostics } from "./diagnostics.tsx";
import { sourceQuery } from "./factory-queries.ts";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

type Branch = components["schemas"]["BranchStatus"];

const REFRESH_MS = 5_000;
const SHA_LENGTH = 10;
const LOOKS = {
  ACTIVE: "good",
  APPLYING: "busy",
  FAILED: "bad",
  DELETED: "",
  CURRENT: "good",
  STALE: "wait",
  UNKNOWN: "",
};

/** The tracked branches of the definition's repository. */
function BranchesPage({ factoryUid }: FactoryTab): ReactNode {
  const mayApply = useMay("source.apply");
  const { data: source } = useQuery(sourceQuery(factoryUid));
  const queries = useQueryClient();
  const toasts = useToasts();
  const { data, error, refetch } = useQuery({
    queryKey: ["factories", factoryUid, "branches"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/factory/{uid}/branches", { params: { path: { uid: factoryUid } }, signal })),
    refetchInterval: REFRESH_MS,
  });
  const change = useMutation({
    mutationFn: ({ branch, verb }: { branch: Branch; verb: "apply" | "untrack" }): Promise<unknown> => {
      const params = { path: { uid: factoryUid, branch_uid: branch.uid } };
      return verb === "apply"
        ? api.POST("/api/v1/factory/{uid}/branches/{branch_uid}/apply", { params })
        : api.DELETE("/api/v1/factory/{uid}/branches/{branch_uid}", { params });
    },
    onSuccess: (_result, { branch, verb }) =>
      toasts.success(verb === "apply" ? `“${branch.name}” is applied.` : `“${branch.name}” is no longer tracked.`),
    onError: (failure: unknown) => toasts.failure(failure),
    onSettled: () => queries.invalidateQueries({ queryKey: ["factories", factoryUid] }),
  });
  if (!data)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  if (source && source.kind !== "git")
    return (
      <EmptyState title="The definition is not in a repository">
        Branches are tracked if the definition is in a git repository. Register it with{" "}
        <code>PUT /factory/{factoryUid}/source</code> and <code>repository_url</code>.
      </EmptyState>
    );
  const columns: readonly Column<Branch>[] = [
    {
      title: "Branch",
      cell: ({ name, is_production: isProduction, is_serving: isServing }) => (
        <span className="line">
          <SafeText>{name}</SafeText>
          {isProduction && <span className="badge plain">production</span>}
          {isServing && <span className="badge good">serving</span>}
        </span>
      ),
    },
    { title: "State", cell: ({ state }) => <span className={`badge ${LOOKS[state]}`}>{state.toLowerCase()}</span> },
    {
      title: "Head",
      cell: ({ freshness }) => <span className={`badge ${LOOKS[freshness]}`}>{freshness.toLowerCase()}</span>,
    },
    { title: "Registered", cell: ({ registered_head_sha: sha }) => <code>{sha?.slice(0, SHA_LENGTH) ?? "–"}</code> },
    { title: "Applied", cell: ({ applied_sha: sha }) => <code>{sha?.slice(0, SHA_LENGTH) ?? "–"}</code> },
    { title: "Checked", cell: ({ last_checked_at: at }) => <Time at={at} /> },
    {
      title: "Actions",
      cell: (branch) => (
        <span className="line">
          <Button
            isSmall
            disabled={!mayApply || change.isPending || branch.registered_head_sha === null}
            onClick={() => change.mutate({ branch, verb: "apply" })}
          >
            Apply <span className="visually-hidden">{branch.name}</span>
          </Button>
          {!branch.is_production && (
            <Button
              isSmall
              look="danger"
              disabled={!mayApply || change.isPending}
              onClick={() => change.mutate({ branch, verb: "untrack" })}
            >
              Stop tracking <span className="visually-hidden">{branch.name}</span>
            </Button>
          )}
        </span>
      ),
    },
  ];
  const failed = data.branches.filter(({ last_error: problem }) => problem !== null);
  return (
    <>
      <div className="filters">
        <TrackBranch factoryUid={factoryUid} mayApply={mayApply} />
        <CopyCommands path={`/factory/${factoryUid}/branches`} />
      </div>
      <DataTable caption="Tracked branches" columns={columns} rows={data.branches} keyOf={({ uid }) => uid} />
      {failed.map(({ uid, name, last_error: problem }) => (
        <Card key={uid} title={<SafeText>{`Error of ${name}`}</SafeText>}>
          <p>
            <SafeText>{problem!.message}</SafeText> <span className="soft small">{problem!.code}</span>
          </p>
          <Diagnostics diagnostics={problem!.diagnostics} />
        </Card>
      ))}
    </>
  );
}

function TrackBranch({ factoryUid, mayApply }: { factoryUid: string; mayApply: boolean }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const [name, setName] = useState("");
  const track = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/factory/{uid}/branches", {
          params: { path: { uid: factoryUid } },
          body: { name: name.trim() },
        }),
      ),
    onSuccess: () => {
      setName("");
      return queries.invalidateQueries({ queryKey: ["factories", factoryUid, "branches"] });
    },
    onError: (error: unknown) => toasts.failure(error),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    track.mutate();
  };
  return (
    <form className="line" onSubmit={submit}>
      <input
        className="input"
        aria-label="Name of the branch"
        placeholder="feature/new-agent"
        required
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Button type="submit" disabled={!mayApply || track.isPending}>
        Track branch
      </Button>
    </form>
  );
}

export default inFactory(BranchesPage);
