import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { agentsQuery } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { factoryQuery } from "./factory-queries.ts";
import { inFactory, type FactoryTab } from "./in-factory.tsx";

type Variant = components["schemas"]["AgentSkillVariant"];
type Skill = Variant & { readonly name: string; readonly agents: readonly string[] };

const COLUMNS: readonly Column<Skill>[] = [
  {
    title: "Skill",
    cell: ({ name, description }) => (
      <div className="stack">
        <strong>
          <SafeText>{name}</SafeText>
        </strong>
        <span className="soft small">
          <SafeText>{description}</SafeText>
        </span>
      </div>
    ),
  },
  {
    title: "From",
    cell: ({ source: { owner, name, skill_path: path } }) => (
      <SafeText>{owner === "factory" ? path : `${owner}/${name}: ${path}`}</SafeText>
    ),
  },
  { title: "Agents", cell: ({ agents }) => <SafeText>{agents.join(", ") || "–"}</SafeText> },
  { title: "Problem", cell: ({ error }) => (error === undefined ? "–" : <SafeText>{error}</SafeText>) },
  { title: "Last run", cell: ({ last_run_timestamp: at }) => <Time at={at} /> },
  {
    title: "Runs",
    cell: ({ id }) => (
      <Link to="/runs" search={{ skill_spec: id }}>
        Its runs
      </Link>
    ),
  },
];

/** The skills of a factory's definition and repositories, and the agents that have them. */
function SkillsPage({ factoryUid }: FactoryTab): ReactNode {
  const { data: factory } = useQuery(factoryQuery(factoryUid));
  const { data: agents } = useQuery(agentsQuery(factoryUid));
  const { data, error, refetch } = useQuery({
    queryKey: ["factories", factoryUid, "skills"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent", { params: { query: { include_malformed_skills: true } }, signal })),
  });
  if (!data)
    return error ? <ErrorView error={error} onRetry={() => void refetch()} /> : <p className="soft">Loading…</p>;
  const repositories = new Set(factory?.repositories.map(({ owner, repo }) => `${owner}/${repo}`));
  const skills = data.agents.flatMap(({ name, variants }) =>
    variants
      .filter(({ source }) =>
        source.owner === "factory" ? source.name === factoryUid : repositories.has(`${source.owner}/${source.name}`),
      )
      .map((variant) => ({
        ...variant,
        name,
        agents: agents?.agents.filter((agent) => agent.skills.includes(name)).map((agent) => agent.name) ?? [],
      })),
  );
  if (skills.length === 0)
    return (
      <EmptyState title="No skills yet">
        A skill is a file that tells agents how to do something. Add <code>skills/NAME/SKILL.md</code> to the definition
        or to a repository of the factory, and name it under <code>skills</code> of an agent.
      </EmptyState>
    );
  return (
    <>
      <div className="filters">
        <CopyCommands path="/agent?include_malformed_skills=true" />
      </div>
      <DataTable caption="Skills" columns={COLUMNS} rows={skills} keyOf={({ id }) => id} />
    </>
  );
}

export default inFactory(SkillsPage);
