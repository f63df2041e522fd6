import { z } from "zod";
import type { factories } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { withExactNumbers } from "@millwright/payload-filter";
import { recordOf, timestamp, uuid } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";

const Json = recordOf(z.string(), z.unknown());

/** An event or schedule that starts an automation. */
const Trigger = z
  .object({
    provider: z
      .string()
      .meta({ description: "webhook, schedule, factory, github or gitlab. Other values are stored and never fire." }),
    event: z.string(),
    filter: Json.optional().meta({
      description: "A list of values, or `{in, not_in}`, per key; of webhooks `webhook_ids` and `payload`.",
    }),
    schedule: z.object({ cron: z.string(), name: z.string().optional() }).optional(),
  })
  .meta({ id: "AutomationTrigger" });

/** Settings of an automation's runs that override those of their agent. */
const execution = {
  model: z.string().optional(),
  harness: z
    .object({
      type: z.string(),
      model: z.string().optional(),
      reasoning_level: z.string().optional(),
      auth: z.object({ source: z.string(), secret_name: z.string().optional() }).optional(),
    })
    .optional(),
  runner: z.string().optional().meta({ description: "Name of a runner of the factory." }),
  environment_id: z.string().optional(),
  secrets: z.array(z.string()).optional(),
  mcp_servers: recordOf(z.string(), z.object({ warp_id: z.string() })).optional(),
  worker_host: z.string().optional(),
};

const settings = {
  name: z.string().trim().min(1).max(100),
  agent: z.string().nullish().meta({ description: "Name of an agent of the factory. Absent: the foreman." }),
  prompt: z.string().min(1).meta({ description: "The prompt of each run." }),
  triggers: z.array(Trigger).min(1).max(50),
  ...execution,
};

export const NewAutomation = z.object({ ...settings, enabled: z.boolean().optional() });
export const AutomationSettings = z.object({ ...settings, enabled: z.boolean() });

export const Automation = z
  .object({
    uid: z.string(),
    factory_uid: z.string(),
    name: z.string(),
    enabled: z.boolean(),
    disabled_reason: z.string().nullable().meta({
      description:
        "Why the platform disabled it: its creator was removed from the team or became a viewer. null: the platform did not disable it.",
    }),
    agent: z.string().nullable().meta({ description: "null: the foreman." }),
    prompt: z.string(),
    triggers: z.array(Trigger),
    ...execution,
    management: z
      .enum(["live", "files"])
      .meta({ description: "files: defined by the factory's files and changed only there." }),
    created_at: timestamp(),
    updated_at: timestamp(),
    last_fired_at: timestamp().nullable(),
  })
  .meta({ id: "Automation" });

/** A decision: why an automation fired or did not. */
export const Decision = z
  .object({
    event_uid: z.string().meta({ description: "Uid of the delivery, or of the event. Empty for a dry run." }),
    automation_uid: z.string(),
    automation: z.string().meta({ description: "Name of the automation at the time of the decision." }),
    provider: z.string(),
    event: z.string(),
    outcome: z
      .enum(["pending", "fired", "continued", "not_matched", "disabled", "suppressed", "failed", "not_listening"])
      .meta({
        description:
          "pending: the run is being created, or the filter waits for a response of the code host (see `next_attempt_at`). continued: a task bound to the same issue or pull request continues in the named run. suppressed: firing would have caused a loop. failed: the event matched, but the run could not be created. not_listening: no trigger subscribes to this kind of event.",
      }),
    explanation: z.string(),
    checks: z
      .array(z.object({ trigger: z.int(), passed: z.boolean(), detail: z.string(), failed: z.array(z.string()) }))
      .meta({ description: "Result of each trigger that subscribes to this kind of event." }),
    run_id: z.string().nullable(),
    next_attempt_at: timestamp().nullable().meta({
      description:
        "Time of the next request to the code host for data that the filter needs. `explanation` contains the reason of the last failure. null: the decision does not wait for a code host.",
    }),
    subject: Json.meta({ description: "Known attributes of the event." }),
    occurred_at: timestamp(),
    decided_at: timestamp(),
  })
  .meta({ id: "AutomationDecision" });

export const Replay = z.object({
  automation_uid: uuid(),
  dry_run: z.boolean().optional().meta({ description: "true: evaluates the automation without starting a run." }),
});
export const Replayed = z
  .object({ would_trigger: z.boolean(), label: z.enum(["Would trigger", "Would not trigger"]), decision: Decision })
  .meta({ id: "ReplayedDelivery" });

type StoredDefinition = {
  readonly triggers?: readonly {
    provider: string;
    event: string;
    filter?: Record<string, unknown>;
    payload?: unknown;
    schedule?: { cron: string; name?: string };
  }[];
} & Record<string, unknown>;

export function automationRecord(automation: factories.Automation): z.input<typeof Automation> {
  const { triggers = [], ...keys } = (automation.definition ?? {}) as StoredDefinition;
  return {
    uid: automation.uid,
    factory_uid: automation.factoryUid,
    name: automation.name,
    enabled: automation.enabled,
    disabled_reason: automation.disabledReason ?? null,
    agent: automation.agent ?? null,
    prompt: automation.prompt,
    triggers: triggers.map(({ provider, event, filter, payload, schedule }) =>
      omitUndefined({ provider, event, filter: filterOf(filter, payload), schedule }),
    ),
    ...keys,
    management: automation.management as "live",
    created_at: isoTime(automation.createdAt!),
    updated_at: isoTime(automation.updatedAt!),
    last_fired_at: automation.lastFiredAt ? isoTime(automation.lastFiredAt) : null,
  };
}

function filterOf(filter: Record<string, unknown> = {}, payload: unknown): Record<string, unknown> | undefined {
  const whole = { ...filter, ...(payload !== undefined && { payload: withExactNumbers(payload) }) };
  return Object.keys(whole).length === 0 ? undefined : whole;
}

export const decisionRecord = (decision: factories.Decision): z.input<typeof Decision> => ({
  event_uid: decision.eventUid,
  automation_uid: decision.automationUid,
  automation: decision.automationName,
  provider: decision.provider,
  event: decision.event,
  outcome: decision.outcome as "fired",
  explanation: decision.explanation,
  checks: decision.checks.map(({ trigger, passed, detail, failed }) => ({ trigger, passed, detail, failed })),
  run_id: decision.runUid ?? null,
  subject: decision.subject ?? {},
  occurred_at: isoTime(decision.occurredAt!),
  decided_at: isoTime(decision.decidedAt!),
  next_attempt_at: decision.nextAttemptAt ? isoTime(decision.nextAttemptAt) : null,
});

export const replayRecord = (wouldTrigger: boolean, decision: factories.Decision): z.input<typeof Replayed> => ({
  would_trigger: wouldTrigger,
  label: wouldTrigger ? "Would trigger" : "Would not trigger",
  decision: decisionRecord(decision),
});
