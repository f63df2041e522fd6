import { useState, type FormEvent, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, Facts, Page } from "../../ui/page.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { Time } from "../../ui/time.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { ForTeam } from "./for-team.tsx";

type Team = components["schemas"]["Team"];

/** The name, capabilities, limits and defaults of the team. */
export default function SettingsPage(): ReactNode {
  return <ForTeam title="Team settings">{({ uid }) => <Settings teamUid={uid} />}</ForTeam>;
}

function Settings({ teamUid }: { teamUid: string }): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["team", teamUid],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/team/{uid}", { params: { path: { uid: teamUid } }, signal })),
  });
  return (
    <Page title="Team settings" actions={<CopyCommands path={`/team/${teamUid}`} cli="team list" />}>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      {data && (
        <>
          <Facts
            entries={[
              ["Team", <Id key="uid" value={data.uid} isFull />],
              ["Created", <Time key="created" at={data.created_at} />],
              ["Changed", <Time key="updated" at={data.updated_at} />],
            ]}
          />
          {/* a change by someone else replaces the form */}
          <SettingsForm key={data.updated_at} team={data} />
        </>
      )}
    </Page>
  );
}

type Changes = {
  name?: string;
  concurrency_limit?: number;
  queue_weight?: number;
  queue_paused?: boolean;
  capabilities?: Team["capabilities"];
  agent_defaults?: Record<string, unknown>;
};

function SettingsForm({ team }: { team: Team }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const mayManage = useMay("team.manage");
  const [name, setName] = useState(team.name);
  const [limit, setLimit] = useState(String(team.concurrency_limit));
  const [isPaused, setPaused] = useState(team.queue_paused);
  const [capabilities, setCapabilities] = useState(team.capabilities);
  const [defaults, setDefaults] = useState(() => JSON.stringify(team.agent_defaults, undefined, 2));
  const [problem, setProblem] = useState<string>();
  const save = useMutation({
    mutationFn: (body: Changes) =>
      dataOf(api.PATCH("/api/v1/team/{uid}", { params: { path: { uid: team.uid } }, body })),
    onSuccess: (saved) => {
      toasts.success("The settings are saved.");
      queries.setQueryData(["team", team.uid], saved);
      void queries.invalidateQueries({ queryKey: ["whoami"] });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const parsed = objectOf(defaults);
    setProblem(parsed === undefined ? "The defaults must be one JSON object." : undefined);
    if (parsed === undefined) return;
    save.mutate({
      ...(name.trim() === team.name ? {} : { name: name.trim() }),
      ...(Number(limit) === team.concurrency_limit ? {} : { concurrency_limit: Number(limit) }),
      ...(isPaused === team.queue_paused ? {} : { queue_paused: isPaused }),
      ...(same(capabilities, team.capabilities) ? {} : { capabilities }),
      ...(same(parsed, team.agent_defaults) ? {} : { agent_defaults: parsed }),
    });
  };
  return (
    <form className="form" onSubmit={submit}>
      <fieldset className="plain-fieldset" disabled={!mayManage}>
        <Card title="General">
          <div className="form">
            <TextField label="Name" required value={name} onChange={setName} />
          </div>
        </Card>
        <Card title="Limits">
          <div className="form">
            <TextField
              label="Runs at the same time (0: the default of the platform)"
              type="number"
              min={0}
              step={1}
              required
              value={limit}
              onChange={setLimit}
            />
            <label className="check">
              <input type="checkbox" checked={isPaused} onChange={(event) => setPaused(event.target.checked)} />
              Pause the queue: queued runs do not start
            </label>
            <p className="soft small">
              Weight in the shared queue: {team.queue_weight}. Platform administrators change it.
            </p>
          </div>
        </Card>
        <Card title="Capabilities">
          <div className="form">
            <label className="check">
              <input
                type="checkbox"
                checked={capabilities.factory_branches}
                onChange={(event) => setCapabilities({ ...capabilities, factory_branches: event.target.checked })}
              />
              Factory branches
            </label>
            <label className="check">
              <input
                type="checkbox"
                checked={capabilities.metadata_filter}
                onChange={(event) => setCapabilities({ ...capabilities, metadata_filter: event.target.checked })}
              />
              Filter runs by metadata
            </label>
          </div>
        </Card>
        <Card title="Defaults of agents">
          <label className="field">
            <span>JSON, as in the configuration of an agent</span>
            <textarea
              className="textarea mono"
              rows={6}
              spellCheck={false}
              value={defaults}
              onChange={(event) => setDefaults(event.target.value)}
            />
          </label>
        </Card>
      </fieldset>
      {problem !== undefined && (
        <p className="notice bad" role="alert">
          {problem}
        </p>
      )}
      {save.error && <ErrorView error={save.error} />}
      <div>
        <Button look="primary" type="submit" disabled={!mayManage || save.isPending}>
          Save
        </Button>
        {!mayManage && <span className="soft small"> Only owners and admins change the settings.</span>}
      </div>
    </form>
  );
}

const same = (left: object, right: object): boolean => JSON.stringify(left) === JSON.stringify(right);

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
