import { PROVIDERS, type FilterRule, type Provider } from "../trigger-rules.ts";
import { BOOLEAN, closed, common, document, enumOf, executing, TEXT, type JsonSchema } from "./json-schema.ts";

const values = (rule: FilterRule): JsonSchema => {
  if (rule.kind === "payload") return common("payloadFilter");
  const items =
    rule.kind === "numbers"
      ? NUMBER
      : rule.oneOf
        ? enumOf(rule.oneOf)
        : rule.form
          ? { type: "string", pattern: rule.form.pattern.source }
          : TEXT;
  const list = {
    type: "array",
    items,
    ...(rule.isRequired && { minItems: 1 }),
    ...(rule.max !== undefined && { maxItems: rule.max }),
  };
  if (rule.isInclusionOnly)
    return {
      oneOf: [
        ...(rule.isRequired ? [] : [{ type: "null" }]),
        list,
        closed({ in: list }, { required: rule.isRequired ? ["in"] : [] }),
      ],
    };
  return rule.oneOf || rule.kind || rule.form
    ? { oneOf: [{ type: "null" }, list, closed({ in: list, not_in: list })] }
    : common("values");
};

/** Whole numbers of at most 16 digits, as in the parser; excludes 9999999999999999, which no double represents. */
const NUMBER: JsonSchema = {
  anyOf: [
    { type: "integer", minimum: 1, maximum: 9_999_999_999_999_998 },
    { type: "string", pattern: "^[1-9][0-9]{0,15}$" },
  ],
};

/** The rules for the triggers of one provider; an attribute exists only on some events. */
function triggerOf([name, { events, filters }]: [string, Provider]): JsonSchema {
  const rules = Object.entries(filters);
  const required = rules.filter(([, rule]) => rule.isRequired).map(([key]) => key);
  const absent = rules.flatMap(([key, rule]) => {
    const without = events.filter((event) => !rule.on(event));
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    return without.length === 0
      ? []
      : [
          {
            if: { properties: { event: enumOf(without) } },
            then: { properties: { filter: { properties: { [key]: false } } } },
          },
        ];
  });
  return {
    properties: {
      provider: { const: name },
      event: enumOf(events),
      filter: closed(Object.fromEntries(rules.map(([key, rule]) => [key, values(rule)])), { required }),
      schedule:
        name === "schedule"
          ? closed({ cron: TEXT, name: { ...(TEXT as object), maxLength: 100 } }, { required: ["cron"] })
          : false,
    },
    required: [
      "provider",
      "event",
      ...(required.length > 0 ? ["filter"] : []),
      ...(name === "schedule" ? ["schedule"] : []),
    ],
    ...(absent.length > 0 && { allOf: absent }),
  };
}

/** The frontmatter of automations/<name>/automation.md */
export const AUTOMATION = document(
  "automation.schema.json",
  "automation.md",
  "The frontmatter of an automation's file; the text after it is the prompt of the runs that it starts.",
  executing(
    {
      enabled: BOOLEAN,
      agent: { ...(TEXT as object), description: "The directory of an agent; absent: the foreman." },
      triggers: {
        type: "array",
        minItems: 1,
        items: {
          ...(closed({
            provider: enumOf(Object.keys(PROVIDERS)),
            event: TEXT,
            filter: { type: ["object", "null"] },
            schedule: true,
          }) as object),
          oneOf: Object.entries(PROVIDERS).map(triggerOf),
        },
      },
    },
    { required: ["triggers"] },
  ),
);
