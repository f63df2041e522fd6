import type { ReactNode } from "react";
import { FactoryFilter } from "../../app/factory-filter.tsx";
import { ChoiceFilter, ChoicesFilter, ClearFilters, DateFilter, TextFilter } from "../../ui/filters.tsx";
import { sentenceCase, sourceText } from "../../ui/run-source.ts";
import { RUN_STATES, stateText } from "../../ui/state-badge.tsx";
import { hasFilters, type RunsSearch } from "./runs-search.ts";

const labelled = <Value extends string>(values: readonly Value[], labelOf: (value: Value) => string = sentenceCase) =>
  values.map((value) => ({ value, label: labelOf(value) }));
const STATES = RUN_STATES.map((value) => ({ value, label: stateText(value) }));
const TASK_STATUSES = labelled(["running", "complete", "failed", "blocked", "cancelled"]);
const ARTIFACTS = labelled(["PLAN", "PULL_REQUEST", "SCREENSHOT", "FILE", "EXTERNAL_REFERENCE"]);
const LOCATIONS = labelled(["REMOTE", "LOCAL"]);
const SOURCES = labelled(
  [
    ...(["API", "CLI", "WEB_APP", "SCHEDULED_AGENT", "ORCHESTRATION", "CUSTOM_WEBHOOK", "GITHUB_WEBHOOK"] as const),
    ...(["GITLAB_WEBHOOK", "AZURE_DEVOPS_WEBHOOK", "AUTOFIX", "RUN_SCORER", "BENCHMARK_TRIAL"] as const),
    ...(["CREATE_BENCHMARK_TASK", "SELF_IMPROVEMENT", "LINEAR", "JIRA", "SLACK", "TEAMS", "GITHUB_ACTION"] as const),
    ...(["CLOUD_MODE", "LOCAL"] as const),
  ],
  sourceText,
);
const TEXTS: readonly (readonly [name: keyof RunsSearch, label: string])[] = [
  ["name", "Agent name"],
  ["model_id", "Model"],
  ["creator", "Creator"],
  ["executor", "Executor"],
  ["automation_id", "Automation"],
  ["schedule_id", "Schedule"],
  ["environment_id", "Environment"],
  ["skill", "Skill"],
  ["skill_spec", "Skill spec"],
  ["ancestor_run_id", "Ancestor run"],
  ["conversation_id", "Conversation"],
];

type Props = {
  readonly search: RunsSearch;
  readonly onChange: (changes: Partial<RunsSearch>) => void;
};

/** Edits the filters of the run list. Rare ones are folded. */
export function RunFilters({ search, onChange }: Props): ReactNode {
  return (
    <>
      <div className="filters" role="search">
        <TextFilter label="Search runs" value={search.q} onChange={(q) => onChange({ q })} />
        <ChoicesFilter
          label="State"
          values={search.state ?? []}
          choices={STATES}
          onChange={(state) => onChange({ state })}
        />
        <ChoicesFilter
          label="Source"
          values={search.source ?? []}
          choices={SOURCES}
          onChange={(source) => onChange({ source })}
        />
        <ChoicesFilter
          label="Task status"
          values={search.task_status ?? []}
          choices={TASK_STATUSES}
          onChange={(status) => onChange({ task_status: status })}
        />
        <FactoryFilter
          value={search.factory_uid?.[0]}
          onChange={(uid) => onChange({ factory_uid: uid === undefined ? undefined : [uid] })}
        />
        <ChoiceFilter
          label="Artifact"
          value={search.artifact_type}
          choices={ARTIFACTS}
          onChange={(type) => onChange({ artifact_type: type })}
        />
        <ClearFilters
          isActive={hasFilters(search)}
          onClear={() => onChange(Object.fromEntries(Object.keys(search).map((name) => [name, undefined])))}
        />
      </div>
      <MoreFilters search={search} onChange={onChange} />
    </>
  );
}

/** The rare filters. Open if one of them is set. */
function MoreFilters({ search, onChange }: Props): ReactNode {
  const isActive =
    TEXTS.some(([name]) => search[name] !== undefined) ||
    [search.execution_location, search.created_after, search.created_before, search.metadata].some(
      (value) => value !== undefined,
    );
  return (
    <details className="more-filters" open={isActive || undefined}>
      <summary>More filters</summary>
      <div className="filters">
        {TEXTS.map(([name, label]) => (
          <TextFilter
            key={name}
            label={label}
            value={search[name] as string | undefined}
            onChange={(value) => onChange({ [name]: value })}
          />
        ))}
        <TextFilter
          label="Metadata"
          placeholder="Metadata: name=value"
          value={search.metadata?.[0]}
          onChange={(pair) => onChange({ metadata: pair === undefined ? undefined : [pair] })}
        />
        <ChoiceFilter
          label="Location"
          value={search.execution_location}
          choices={LOCATIONS}
          onChange={(value) => onChange({ execution_location: value as RunsSearch["execution_location"] })}
        />
        <ChoiceFilter
          label="Factory runs"
          value={search.factory_only}
          choices={[{ value: "true", label: "Factory runs only" }]}
          onChange={(value) => onChange({ factory_only: value as RunsSearch["factory_only"] })}
        />
        <DateFilter
          label="Created after"
          value={search.created_after}
          onChange={(at) => onChange({ created_after: at })}
        />
        <DateFilter
          label="Created before"
          value={search.created_before}
          onChange={(at) => onChange({ created_before: at })}
        />
        <DateFilter
          label="Updated after"
          value={search.updated_after}
          onChange={(at) => onChange({ updated_after: at })}
        />
      </div>
    </details>
  );
}
