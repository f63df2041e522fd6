import { parseCron } from "@millwright/cron";
import { DomainError } from "@millwright/errors";
import { parseFilter, parseStored } from "@millwright/payload-filter";
import type { TriggerPart } from "./definition.ts";
import type { Fields } from "./fields.ts";
import { PROVIDERS, type FilterRule, type Provider } from "./trigger-rules.ts";

/** Reads one trigger of an automation. */
export function readTrigger(entry: Fields): TriggerPart | undefined {
  for (const key of ["provider", "event"]) entry.require(key);
  const name = entry.oneOf("provider", Object.keys(PROVIDERS));
  const event = entry.text("event");
  const provider = name === undefined ? undefined : PROVIDERS[name];
  if (name === undefined || event === undefined || !provider) return undefined;
  const isKnown = provider.events.includes(event);
  if (!isKnown)
    entry.error(entry.valueAt("event"), "FF_UNKNOWN_EVENT", `Events of ${name} are: ${provider.events.join(", ")}.`);
  const read = readFilter(entry, name, provider, isKnown ? event : undefined);
  const schedule = readSchedule(entry, name);
  return { provider: name, event, ...read, ...(schedule && { schedule }) };
}

function readFilter(
  entry: Fields,
  name: string,
  provider: Provider,
  event: string | undefined,
): Pick<TriggerPart, "filter" | "payload"> {
  entry.inherit("filter");
  const fields = entry.fields("filter", "any");
  const required = Object.entries(provider.filters).filter(([, rule]) => rule.isRequired);
  const filter: TriggerPart["filter"] = {};
  let payload: unknown;
  for (const [key] of required)
    if (!fields?.has(key) && (fields || !entry.has("filter")))
      (fields ?? entry).error((fields ?? entry).at, "FF_INVALID_FILTER", `A trigger of ${name} needs filter.${key}.`);
  for (const key of fields?.keys() ?? []) {
    const rule = Object.hasOwn(provider.filters, key) ? provider.filters[key] : undefined;
    if (!rule)
      fields!.error(
        fields!.keyAt(key),
        "FF_INVALID_FILTER",
        `${name} has no filter ${key}; there are: ${Object.keys(provider.filters).join(", ") || "none"}.`,
      );
    else if (event !== undefined && !rule.on(event))
      fields!.error(fields!.keyAt(key), "FF_INVALID_FILTER", `${event} has no ${key}.`);
    else if (rule.kind === "payload") payload = readPayloadFilter(fields!, key);
    else filter[key] = readSet(fields!, key, rule);
  }
  return { filter, ...(payload !== undefined && { payload }) };
}

/** A list of values, or `{in, not_in}`; null is no constraint. */
function readSet(fields: Fields, key: string, rule: FilterRule): { in?: string[]; not_in?: string[] } {
  if (fields.isNull(key) && !rule.isRequired) return {};
  const valuesOf = (of: Fields, name: string): string[] | undefined =>
    rule.kind === "numbers"
      ? of.numbers(name)
      : of.texts(name, {
          ...(rule.oneOf && { oneOf: rule.oneOf }),
          ...rule.form,
          ...((rule.oneOf || rule.form) && { code: "FF_INVALID_FILTER" as const }),
        });
  const inner = fields.isList(key)
    ? undefined
    : fields.fields(key, ["in", "not_in"], "a list of values, or a mapping of in and not_in");
  const included = inner ? valuesOf(inner, "in") : fields.isList(key) ? valuesOf(fields, key) : undefined;
  const excluded = inner && valuesOf(inner, "not_in");
  const at = fields.valueAt(key);
  if (rule.isInclusionOnly && inner?.has("not_in"))
    fields.error(inner.keyAt("not_in"), "FF_INVALID_FILTER", `${key} takes no not_in.`);
  if (rule.isRequired && (included ?? []).length === 0 && (inner || fields.isList(key)))
    fields.error(at, "FF_INVALID_FILTER", `${key} must name at least one value.`);
  if (rule.max !== undefined && (included ?? []).length > rule.max)
    fields.error(
      at,
      "FF_INVALID_FILTER",
      `${key} takes ${rule.max === 1 ? "exactly one value" : `at most ${rule.max} values`}.`,
    );
  const both = included?.find((value) => excluded?.includes(value));
  if (both !== undefined)
    fields.error(at, "FF_INVALID_FILTER", `${both} is in in and in not_in of ${key}: nothing could match.`);
  return { ...(included && { in: included }), ...(excluded && { not_in: excluded }) };
}

/** Returns the filter in its stored form. */
function readPayloadFilter(fields: Fields, key: string): unknown {
  const read = fields.json(key);
  if (!read) return undefined;
  const { filter, faults } = parseFilter(read.value);
  for (const { path, message } of faults ?? []) fields.error(read.placeOf(path), "FF_INVALID_FILTER", message);
  return filter && parseStored(JSON.stringify(read.value));
}

function readSchedule(entry: Fields, provider: string): TriggerPart["schedule"] {
  if (provider !== "schedule") {
    if (entry.has("schedule"))
      entry.error(entry.keyAt("schedule"), "FF_CONFLICTING_FIELDS", "schedule belongs to the provider schedule only.");
    return undefined;
  }
  entry.require("schedule");
  const fields = entry.fields("schedule", ["cron", "name"]);
  fields?.require("cron");
  const cron = fields?.text("cron");
  const name = fields?.text("name", { max: 100 });
  if (!fields || cron === undefined) return undefined;
  const fault = cronFault(cron);
  if (fault !== undefined) fields.error(fields.valueAt("cron"), "FF_INVALID_CRON", fault);
  return { cron, ...(name !== undefined && { name }) };
}

function cronFault(cron: string): string | undefined {
  try {
    parseCron(cron, "trigger");
    return undefined;
  } catch (error) {
    if (error instanceof DomainError) return error.message;
    throw error;
  }
}
