import { omitUndefined } from "@millwright/json";
import type { AutomationPart, TriggerPart } from "./definition.ts";
import { START, type Problems } from "./diagnostics.ts";
import { EXECUTION_KEYS, readExecutionBlock, type ReadBlock } from "./execution-block.ts";
import { Fields, type Placed } from "./fields.ts";
import { parseMarkdown } from "./markdown.ts";
import { SERVED_PROVIDERS } from "./trigger-rules.ts";
import { readTrigger } from "./trigger.ts";

export type ReadAutomation = { path: string; part: AutomationPart; read: ReadBlock; agent?: Placed<string> };

/** Reads automations/<name>/automation.md; undefined if its frontmatter is not valid YAML. */
export function readAutomationFile(
  name: string,
  path: string,
  text: string,
  problems: Problems,
): ReadAutomation | undefined {
  const parsed = parseMarkdown(path, text, problems);
  if (!parsed) return undefined;
  const fields = new Fields(parsed.document, parsed.map, ["enabled", "agent", "triggers", ...EXECUTION_KEYS]);
  const enabled = fields.boolean("enabled") ?? true;
  const agent = fields.text("agent");
  fields.require("triggers");
  const entries = fields.list("triggers", ["provider", "event", "filter", "schedule"]);
  if (entries?.length === 0 && fields.isList("triggers"))
    fields.error(fields.valueAt("triggers"), "FF_MISSING_FIELD", "An automation needs at least one trigger.");
  const read = (entries ?? []).flatMap((entry) => {
    const trigger = readTrigger(entry);
    if (trigger && !SERVED_PROVIDERS.has(trigger.provider))
      problems.warning(
        path,
        entry.valueAt("provider"),
        "FF_NOT_SERVED",
        `This platform has no integration with ${trigger.provider} yet; the trigger stays inactive.`,
      );
    return trigger ? [{ trigger, entry }] : [];
  });
  refuseTwins(read);
  const execution = readExecutionBlock(fields, { needsModel: false });
  if (parsed.body === "")
    problems.error(
      path,
      START,
      "FF_MISSING_FIELD",
      "The text after the frontmatter is the prompt of the runs and is required.",
    );
  return {
    path,
    part: {
      name,
      enabled,
      ...omitUndefined({ agent }),
      triggers: read.map(({ trigger }) => trigger),
      prompt: parsed.body,
      ...execution.block,
    },
    read: execution,
    agent: agent === undefined ? undefined : { value: agent, at: fields.valueAt("agent") },
  };
}

/** The name of a schedule is its identity within the automation; one schedule may have no name. */
function refuseTwins(read: readonly { readonly trigger: TriggerPart; readonly entry: Fields }[]): void {
  const seen = new Set<string | undefined>();
  for (const {
    trigger: { schedule },
    entry,
  } of read) {
    if (!schedule) continue;
    if (seen.has(schedule.name))
      entry.error(
        entry.valueAt("schedule"),
        "FF_DUPLICATE_NAME",
        schedule.name === undefined
          ? "Only one schedule of an automation may go without a name."
          : `The schedule ${schedule.name} is listed twice.`,
      );
    seen.add(schedule.name);
  }
}
