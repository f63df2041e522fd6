import { useMemo, useState, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { useMay, type Permission } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { SelectField } from "../../ui/select-field.tsx";
import { TextField } from "../../ui/text-field.tsx";

type Issued = components["schemas"]["IssuedApiKey"];
type Holder = "me" | "worker" | `agent:${string}`;
const DAY_MS = 86_400_000;
const LIFETIMES = [7, 30, 90, 365];
const SCOPES = [
  ...["factory.view", "factory.manage", "source.apply", "run.view", "run.create", "run.manage", "task.manage"],
  ...["artifact.manage", "agent.manage", "schedule.manage", "webhook.manage", "secret.manage", "team.manage"],
] as readonly Permission[];

type Props = {
  readonly teamUid: string;
  readonly onClose: () => void;
  /** Receives the response, the only one that contains the key. */
  readonly onIssued: (issued: Issued) => void;
};

/** Creates a key for the caller, an agent or workers. */
export function CreateKeyDialog({ teamUid, onClose, onIssued }: Props): ReactNode {
  const queries = useQueryClient();
  const mayManage = useMay("team.manage");
  const mayManageAgents = useMay("agent.manage");
  const [name, setName] = useState("");
  const [holder, setHolder] = useState<Holder>("me");
  const [days, setDays] = useState("");
  const [scopes, setScopes] = useState<readonly Permission[]>([]);
  const [isForAllTeams, setForAllTeams] = useState(false);
  // fixed when it is chosen, so that a repeated submit has the same body
  const expiry = useMemo(
    () => (days === "" ? undefined : new Date(Date.now() + Number(days) * DAY_MS).toISOString()),
    [days],
  );
  const header = useIdempotencyKey([name, holder, days, scopes, isForAllTeams]);
  const { data } = useQuery({
    queryKey: ["identities", "choices"],
    enabled: mayManageAgents,
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/identities", { signal })),
  });
  const create = useMutation({
    gcTime: 0, // the response contains the key
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/team/{uid}/keys", {
          params: { path: { uid: teamUid }, header },
          body: {
            name: name.trim(),
            kind: holder === "worker" ? "worker" : "api",
            ...(holder.startsWith("agent:") ? { agent_uid: holder.slice("agent:".length) } : {}),
            ...(holder === "me" && isForAllTeams ? { all_teams: true } : {}),
            ...(holder !== "worker" && scopes.length > 0 ? { scopes: [...scopes] } : {}),
            ...(expiry === undefined ? {} : { expires_at: expiry }),
          },
        }),
      ),
    onSuccess: (issued) => {
      void queries.invalidateQueries({ queryKey: ["keys", teamUid] });
      onIssued(issued);
    },
  });
  const toggle = (scope: Permission): void =>
    setScopes(scopes.includes(scope) ? scopes.filter((each) => each !== scope) : [...scopes, scope]);
  return (
    <FormDialog
      title="Create key"
      action="Create"
      isPending={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextField label="Name" required value={name} onChange={setName} />
      <SelectField<Holder>
        label="For"
        value={holder}
        choices={[
          { value: "me", label: "Yourself" },
          ...(mayManage ? [{ value: "worker" as const, label: "Workers of the team" }] : []),
          ...(data?.agents ?? []).map(({ uid, name: agent }) => ({
            value: `agent:${uid}` as const,
            label: `Agent ${agent}`,
          })),
        ]}
        onChange={setHolder}
      />
      <SelectField
        label="Expires"
        value={days}
        choices={[
          { value: "", label: "Never" },
          ...LIFETIMES.map((value) => ({ value: `${value}`, label: `In ${value} days` })),
        ]}
        onChange={setDays}
      />
      {holder === "me" && (
        <label className="check">
          <input type="checkbox" checked={isForAllTeams} onChange={(event) => setForAllTeams(event.target.checked)} />
          Valid in all your teams, current and future
        </label>
      )}
      {holder !== "worker" && (
        <fieldset className="checks">
          <legend>Limit to permissions (none selected: all that the owner has)</legend>
          {SCOPES.map((scope) => (
            <label key={scope} className="check">
              <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
              {scope}
            </label>
          ))}
        </fieldset>
      )}
    </FormDialog>
  );
}
