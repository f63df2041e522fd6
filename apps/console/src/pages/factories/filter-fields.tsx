import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { SelectField, withChosen } from "../../ui/select-field.tsx";
import { STAGES } from "../../ui/task-stages.ts";
import { webhooksQuery } from "./factory-queries.ts";
import { isObject, valuesOf, type Filter } from "./trigger-text.ts";

const STAGE_KEYS = { stages: "To the stages (none: all)", from_stages: "From the stages (none: all)" } as const;

/** Returns a filter from its JSON, or undefined if the text is not a JSON object. No text is a filter without keys. */
function filterOf(text: string): Filter | undefined {
  try {
    const filter: unknown = text.trim() === "" ? {} : JSON.parse(text);
    return isObject(filter) ? filter : undefined;
  } catch {
    return undefined;
  }
}

type Props = {
  readonly factoryUid: string;
  readonly provider: string;
  /** JSON text. */
  readonly filter: string;
  readonly onChange: (filter: string) => void;
};

/** Edits the filter of a trigger: its webhook or its stages by choice, everything as JSON. */
export function FilterFields({ factoryUid, provider, filter: text, onChange }: Props): ReactNode {
  const filter = filterOf(text);
  const setValues = (key: string, values: readonly string[]): void => {
    const { [key]: _before, ...rest } = filter ?? {};
    const next = values.length > 0 ? { ...rest, [key]: values } : rest;
    onChange(Object.keys(next).length > 0 ? JSON.stringify(next, undefined, 2) : "");
  };
  const hasChoices = provider === "webhook" || provider === "factory";
  return (
    <>
      {filter && provider === "webhook" && (
        <WebhookField
          factoryUid={factoryUid}
          value={valuesOf(filter, "webhook_ids")[0] ?? ""}
          onChange={(uid) => setValues("webhook_ids", uid === "" ? [] : [uid])}
        />
      )}
      {filter &&
        provider === "factory" &&
        Object.entries(STAGE_KEYS).map(([key, label]) => (
          <StageChoices
            key={key}
            label={label}
            values={valuesOf(filter, key).map((value) => value.toUpperCase())}
            onChange={(values) => setValues(key, values)}
          />
        ))}
      {/* the element is created again if the provider changes, so that its own state starts anew */}
      <details key={provider} open={!hasChoices || undefined}>
        <summary>Filter as JSON</summary>
        <textarea
          className="textarea mono"
          aria-label="Filter (JSON)"
          spellCheck={false}
          value={text}
          onChange={({ target }) => onChange(target.value)}
        />
      </details>
    </>
  );
}

type WebhookProps = {
  readonly factoryUid: string;
  readonly value: string;
  readonly onChange: (uid: string) => void;
};

function WebhookField({ factoryUid, value, onChange }: WebhookProps): ReactNode {
  const { data } = useQuery(webhooksQuery(factoryUid));
  const webhooks = (data?.webhooks ?? []).map(({ uid, name }) => ({ value: uid, label: name }));
  const isNone = data !== undefined && webhooks.length === 0;
  return (
    <>
      <SelectField
        label="Webhook"
        required
        value={value}
        choices={[
          { value: "", label: isNone ? "No webhook yet" : "Choose a webhook…" },
          ...withChosen(webhooks, value),
        ]}
        onChange={onChange}
      />
      {isNone && (
        <p className="notice">
          <span>
            <Link to="/factories/$factoryUid/webhooks" params={{ factoryUid }}>
              Create a webhook
            </Link>{" "}
            first, then this automation.
          </span>
        </p>
      )}
    </>
  );
}

type StageProps = {
  readonly label: string;
  readonly values: readonly string[];
  readonly onChange: (values: string[]) => void;
};

const StageChoices = ({ label, values, onChange }: StageProps): ReactNode => (
  <fieldset className="plain-fieldset">
    <legend>{label}</legend>
    <div className="filters">
      {STAGES.map(([stage, name]) => (
        <label key={stage} className="check">
          <input
            type="checkbox"
            checked={values.includes(stage)}
            onChange={({ target }) =>
              onChange(target.checked ? [...values, stage] : values.filter((value) => value !== stage))
            }
          />
          {name}
        </label>
      ))}
    </div>
  </fieldset>
);
