import { useState, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { agentsQuery } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { Select, SelectField, withChosen } from "../../ui/select-field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { FilterFields } from "./filter-fields.tsx";
import { eventText } from "./trigger-text.ts";

type Automation = components["schemas"]["Automation"];
type Trigger = components["schemas"]["AutomationTrigger"];
/** A trigger as it is edited: the filter is JSON text. */
type Draft = { readonly provider: string; readonly event: string; readonly cron: string; readonly filter: string };

const PROVIDERS = ["webhook", "schedule", "factory", "github", "gitlab"].map((value) => ({ value, label: value }));
const FIRST_EVENT: Readonly<Record<string, string>> = {
  webhook: "received",
  schedule: "cron_fired",
  factory: "work_item_stage_changed",
};
/** Their events have the same filters. */
const CODE_HOSTS: readonly string[] = ["github", "gitlab"];
const NEW_TRIGGER: Draft = { provider: "webhook", event: "received", cron: "", filter: "" };

/** Returns what changes with the provider. Filters of other providers have other keys, so the filter starts again. */
const changesTo = (provider: string, before: Draft): Partial<Draft> =>
  CODE_HOSTS.includes(provider) && CODE_HOSTS.includes(before.provider)
    ? { provider }
    : { provider, event: FIRST_EVENT[provider] ?? "", filter: "" };

const draftOf = ({ provider, event, schedule, filter }: Trigger): Draft => ({
  provider,
  event,
  cron: schedule?.cron ?? "",
  filter: filter ? JSON.stringify(filter, undefined, 2) : "",
});

type Props = {
  readonly factoryUid: string;
  /** The automation to change. Absent: a new one. */
  readonly automation?: Automation;
  readonly onClose: () => void;
};

/** Creates an automation, or changes its agent, prompt and triggers. */
export function AutomationDialog({ factoryUid, automation, onClose }: Props): ReactNode {
  const queries = useQueryClient();
  const [name, setName] = useState(automation?.name ?? "");
  const [agent, setAgent] = useState(automation?.agent ?? "");
  const [prompt, setPrompt] = useState(automation?.prompt ?? "");
  const [drafts, setDrafts] = useState<readonly Draft[]>(automation?.triggers.map(draftOf) ?? [NEW_TRIGGER]);
  const { data: agents } = useQuery(agentsQuery(factoryUid));
  const triggers = triggersOf(drafts, automation?.triggers ?? []);
  const body = {
    ...(automation && settingsOf(automation)),
    name: name.trim(),
    agent: agent === "" ? null : agent,
    prompt,
    triggers: typeof triggers === "string" ? [] : triggers,
  };
  const header = useIdempotencyKey(body);
  const save = useMutation({
    mutationFn: () =>
      automation
        ? dataOf(
            api.PUT("/api/v1/factory/{uid}/automations/{automationUid}", {
              params: { path: { uid: factoryUid, automationUid: automation.uid } },
              body: { ...body, enabled: automation.enabled },
            }),
          )
        : dataOf(
            api.POST("/api/v1/factory/{uid}/automations", { params: { path: { uid: factoryUid }, header }, body }),
          ),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["factories", factoryUid] });
      onClose();
    },
  });
  const change = (index: number, changes: Partial<Draft>): void =>
    setDrafts(drafts.map((draft, at) => (at === index ? { ...draft, ...changes } : draft)));
  return (
    <FormDialog
      title={automation ? "Edit the automation" : "Create an automation"}
      action={automation ? "Save" : "Create"}
      isPending={save.isPending}
      isInvalid={typeof triggers === "string"}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <TextField label="Name" required value={name} onChange={setName} />
      <SelectField
        label="Agent"
        value={agent}
        choices={[
          { value: "", label: "The factory's foreman (default)" },
          ...(agents?.agents ?? []).map(({ name: each }) => ({ value: each, label: each })),
        ]}
        onChange={setAgent}
      />
      <label className="field">
        <span>Prompt</span>
        <textarea className="textarea" required value={prompt} onChange={(event) => setPrompt(event.target.value)} />
      </label>
      {drafts.map((draft, index) => (
        // triggers have no identity of their own
        <TriggerFields
          key={index}
          factoryUid={factoryUid}
          number={index + 1}
          draft={draft}
          onChange={(changes) => change(index, changes)}
          onRemove={drafts.length > 1 ? () => setDrafts(drafts.filter((_, at) => at !== index)) : undefined}
        />
      ))}
      <div>
        <Button isSmall onClick={() => setDrafts([...drafts, NEW_TRIGGER])}>
          <Plus size={13} aria-hidden />
          Add trigger
        </Button>
      </div>
      {typeof triggers === "string" && (
        <p className="notice bad" role="alert">
          {triggers}
        </p>
      )}
    </FormDialog>
  );
}

type TriggerProps = {
  readonly factoryUid: string;
  readonly number: number;
  readonly draft: Draft;
  readonly onChange: (changes: Partial<Draft>) => void;
  readonly onRemove: (() => void) | undefined;
};

function TriggerFields({ factoryUid, number, draft, onChange, onRemove }: TriggerProps): ReactNode {
  const { provider, event, cron, filter } = draft;
  const onlyEvent = FIRST_EVENT[provider];
  return (
    <fieldset className="trigger">
      <legend>Trigger {number}</legend>
      <div className="filters">
        <Select
          label="Provider"
          value={provider}
          choices={withChosen(PROVIDERS, provider)}
          onChange={(value) => onChange(changesTo(value, draft))}
        />
        {onlyEvent === undefined ? (
          <input
            className="input"
            aria-label="Event"
            placeholder="pull_request_opened"
            required
            value={event}
            onChange={({ target }) => onChange({ event: target.value })}
          />
        ) : (
          <Select
            label="Event"
            value={event}
            choices={[...new Set([onlyEvent, event])].map((each) => ({
              value: each,
              label: eventText(provider, each),
            }))}
            onChange={(value) => onChange({ event: value })}
          />
        )}
        {provider === "schedule" && (
          <input
            className="input mono"
            aria-label="Cron in UTC"
            placeholder="0 3 * * *"
            required
            value={cron}
            onChange={({ target }) => onChange({ cron: target.value })}
          />
        )}
        {onRemove && (
          <Button look="quiet" isIcon isSmall aria-label={`Remove trigger ${number}`} onClick={onRemove}>
            <Trash2 size={13} aria-hidden />
          </Button>
        )}
      </div>
      {provider !== "schedule" && (
        <FilterFields
          factoryUid={factoryUid}
          provider={provider}
          filter={filter}
          onChange={(text) => onChange({ filter: text })}
        />
      )}
    </fieldset>
  );
}

/** Returns the triggers of the drafts, or what is wrong with one. Names of schedules are retained by position. */
function triggersOf(drafts: readonly Draft[], before: readonly Trigger[]): Trigger[] | string {
  const triggers: Trigger[] = [];
  for (const [index, { provider, event, cron, filter }] of drafts.entries()) {
    const base = { provider, event: event.trim() };
    if (provider === "schedule") {
      triggers.push({ ...base, schedule: { ...before[index]?.schedule, cron: cron.trim() } });
    } else if (filter.trim() === "") {
      triggers.push(base);
    } else {
      try {
        triggers.push({ ...base, filter: JSON.parse(filter) as Record<string, unknown> });
      } catch {
        return `The filter of trigger ${index + 1} is not JSON.`;
      }
    }
  }
  return triggers;
}

/** Returns the fields of an automation that a replacement contains. */
export function settingsOf(automation: Automation) {
  const {
    uid: _uid,
    factory_uid: _factory,
    disabled_reason: _reason,
    management: _management,
    created_at: _created,
    updated_at: _updated,
    last_fired_at: _fired,
    ...settings
  } = automation;
  return settings;
}
