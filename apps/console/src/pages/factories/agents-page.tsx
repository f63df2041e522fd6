import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { agentsQuery } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, EmptyState } from "../../ui/page.tsx";
import { harnessText } from "../../ui/run-source.ts";
import { SafeText, visibleText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { sourceQuery } from "./factory-queries.ts";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

type Agent = components["schemas"]["AgentIdentity"];

const COLUMNS: readonly Column<Agent>[] = [
  {
    title: "Agent",
    cell: ({ name, description }) => (
      <div className="stack">
        <strong>
          <SafeText>{name}</SafeText>
        </strong>
        {description && (
          <span className="soft small">
            <SafeText>{description}</SafeText>
          </span>
        )}
      </div>
    ),
  },
  { title: "Type", cell: ({ agent_type: type }) => type?.toLowerCase() ?? "–" },
  { title: "Model", cell: ({ base_model: model }) => <SafeText>{model || "default"}</SafeText> },
  { title: "Harness", cell: ({ harness }) => (harness?.type ? harnessText(harness.type) : "default") },
  { title: "Skills", cell: ({ skills }) => <SafeText>{skills.join(", ") || "–"}</SafeText> },
  {
    title: "State",
    cell: ({ available }) =>
      available ? <span className="badge good">Available</span> : <span className="badge wait">Not available</span>,
  },
  { title: "Updated", cell: ({ updated_at: at }) => <Time at={at} /> },
  { title: "Id", cell: ({ uid }) => <Id value={uid} /> },
];

/** The agents of a factory. */
function AgentsPage({ factoryUid }: FactoryTab): ReactNode {
  const { data, error, refetch } = useQuery(agentsQuery(factoryUid));
  if (!data)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  if (data.agents.length === 0)
    return (
      <>
        <EmptyState title="No agents yet">
          Add a file such as <code>agents/foreman/agent.md</code> to the definition and apply it, or{" "}
          <code>npx millwright agent create foreman --factory {factoryUid}</code>
        </EmptyState>
        <Runners factoryUid={factoryUid} />
      </>
    );
  return (
    <>
      <div className="filters">
        <CopyCommands path={`/agent/identities?factory_uid=${factoryUid}`} cli={`agent list --factory ${factoryUid}`} />
      </div>
      <DataTable caption="Agents" columns={COLUMNS} rows={data.agents} keyOf={({ uid }) => uid} />
      <Runners factoryUid={factoryUid} />
    </>
  );
}

const RUNNER_FILE = /^runners\/([^/]+)\.ya?ml$/;

/** The machines that agents run on: files of the definition. Hidden if it has none, or is read from a repository. */
function Runners({ factoryUid }: { factoryUid: string }): ReactNode {
  const { data: source } = useQuery(sourceQuery(factoryUid));
  const runners = (source?.files ?? []).flatMap(({ path, content }) => {
    const name = RUNNER_FILE.exec(path)?.[1];
    return name === undefined ? [] : [{ name, path, content }];
  });
  if (runners.length === 0) return null;
  return (
    <Card title="Runners">
      {runners.map(({ name, path, content }) => (
        <details key={path}>
          <summary>
            <SafeText>{name}</SafeText>
          </summary>
          <pre className="payload" tabIndex={0} role="region" aria-label={`Content of ${visibleText(path)}`}>
            <SafeText>{content}</SafeText>
          </pre>
        </details>
      ))}
    </Card>
  );
}

export default inFactory(AgentsPage);
