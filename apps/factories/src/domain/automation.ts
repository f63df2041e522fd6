import { parseAutomation, type AutomationPart, type ExecutionBlock } from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import { isUuid, newUid, uidOf, type FactoryUid, type TeamUid, type Uid } from "@millwright/ids";
import { canonicalJson, omitUndefined } from "@millwright/json";
import type { JsonObject } from "@millwright/json";

export type AutomationUid = Uid<"automation">;

/**
 * Triggers, prompt, agent, and the execution keys that override the agent's. `name` and `enabled` belong to the record.
 */
export type AutomationRules = Omit<AutomationPart, "name" | "enabled">;

/** Starts runs of a factory on events. */
export type Automation = {
  readonly uid: AutomationUid;
  readonly factoryUid: FactoryUid;
  readonly teamUid: TeamUid;
  readonly name: string;
  readonly enabled: boolean;
  readonly rules: AutomationRules;
  readonly management: "live" | "files";
  /** Of files: the file as last projected. */
  readonly projectedDefinition: AutomationPart | null;
  /** The principal for whom its runs are created. */
  readonly creator: { readonly type: string; readonly uid: string };
  /** The creator was removed from the team or became a viewer; the automation is disabled. */
  readonly creatorLostAccess: boolean;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly lastFiredAt: Date | null;
};

/** Limits of the number of automations per event and the size of a request. */
export const AUTOMATIONS_PER_FACTORY_MAX = 200;
const NAME_CHARACTERS_MAX = 100;
const PROMPT_BYTES_MAX = 256 * 1024;
const TRIGGERS_MAX = 50;
const DEFINITION_BYTES_MAX = 128 * 1024;

/** An error in an automation; the codes are those of definition files. */
export type AutomationFault = { readonly code: string; readonly message: string };
/** A parsed automation. With faults, `part` is what could be parsed. */
export type ReadAutomation = { readonly part: AutomationPart | undefined; readonly faults: readonly AutomationFault[] };

/**
 * Parses a requested automation by the rules of definition files.
 *
 * Errors: invalid_automation, if it exceeds its limits.
 */
export function readAutomation(body: JsonObject): ReadAutomation {
  const { name, prompt, ...keys } = body;
  if (typeof name !== "string" || name.trim() === "" || name.trim().length > NAME_CHARACTERS_MAX)
    throw invalid(
      `name must have 1 to ${NAME_CHARACTERS_MAX} characters${typeof name === "string" ? ` (got ${name.trim().length})` : ""}.`,
    );
  if (typeof prompt !== "string" || !prompt.isWellFormed() || Buffer.byteLength(prompt) > PROMPT_BYTES_MAX)
    throw invalid(
      `prompt must be text of at most ${PROMPT_BYTES_MAX} bytes${typeof prompt === "string" ? ` (got ${Buffer.byteLength(prompt)})` : ""}.`,
    );
  if (
    Buffer.byteLength(JSON.stringify(keys)) > DEFINITION_BYTES_MAX ||
    (Array.isArray(keys["triggers"]) && keys["triggers"].length > TRIGGERS_MAX)
  ) {
    throw invalid(
      `An automation must have at most ${TRIGGERS_MAX} triggers, and at most ${DEFINITION_BYTES_MAX} bytes without its prompt.`,
    );
  }
  const { automation, draft, faults } = parseAutomation(name.trim(), { ...keys, prompt });
  const part = automation ?? draft;
  const found = faults.map(({ code, message }): AutomationFault => ({ code, message }));
  if (part?.triggers.some(({ filter }) => filter["webhook_ids"]?.in?.some((uid) => !isUuid(uid))))
    found.push({ code: "FF_INVALID_REFERENCE", message: "webhook_ids must contain uids of webhooks." });
  if (!name.isWellFormed()) found.push({ code: "FF_INVALID_VALUE", message: "name must be well-formed Unicode." });
  return { part, faults: found };
}

/** Returns a valid automation. Errors: invalid_automation, with every fault as a detail. */
export function faultless({ part, faults }: ReadAutomation): AutomationPart {
  if (part && faults.length === 0) return part;
  throw new DomainError({
    kind: "invalid_argument",
    reason: "invalid_automation",
    message: faults.map(({ message }) => message).join(" "),
    details: [...faults],
  });
}

const invalid = (message: string): DomainError => invalidArgument("invalid_automation", message);

/** Returns a new automation; with `management: "files"` it is a file's. */
export function newAutomation(
  part: AutomationPart,
  at: Pick<Automation, "factoryUid" | "teamUid" | "creator" | "management">,
  now: Date,
): Automation {
  const { name, enabled, ...rules } = part;
  return {
    ...at,
    uid: newUid<AutomationUid>(),
    name,
    enabled,
    rules,
    projectedDefinition: at.management === "files" ? part : null,
    creatorLostAccess: false,
    version: 1,
    createdAt: now,
    updatedAt: now,
    lastFiredAt: null,
  };
}

/** Returns the automation with new rules. */
export function changeAutomation(automation: Automation, part: AutomationPart, now: Date): Automation {
  const { name, enabled, ...rules } = part;
  return { ...automation, name, enabled, rules, version: automation.version + 1, updatedAt: now };
}

/** Returns whether two are equal except for `enabled`. */
export const isSameButSwitch = (
  automation: Automation,
  { name, enabled: _switch, ...rules }: AutomationPart,
): boolean => name === automation.name && canonicalJson(rules) === canonicalJson(automation.rules);

export type ProjectedChange = { readonly happened: "created" | "updated" | "deleted"; readonly automation: Automation };

/**
 * Returns the changes that a definition makes to a factory's file automations: each retains its uid while its file
 * exists, and `enabled` while the file is unchanged; without its file it is deleted.
 */
export function projectAutomations(
  before: readonly Automation[],
  parts: readonly AutomationPart[],
  at: Pick<Automation, "factoryUid" | "teamUid" | "creator">,
  now: Date,
): ProjectedChange[] {
  const known = new Map(before.map((automation) => [automation.name, automation]));
  const removed = before.filter(({ name }) => parts.every((part) => part.name !== name));
  return [
    ...removed.map((automation): ProjectedChange => ({
      happened: "deleted",
      automation: { ...automation, version: automation.version + 1, updatedAt: now },
    })),
    ...parts.flatMap((part): ProjectedChange[] => {
      const old = known.get(part.name);
      if (!old) return [{ happened: "created", automation: newAutomation(part, { ...at, management: "files" }, now) }];
      if (canonicalJson(old.projectedDefinition) === canonicalJson(part)) return [];
      return [
        {
          happened: "updated",
          automation: { ...changeAutomation(old, part, now), projectedDefinition: part, creator: at.creator },
        },
      ];
    }),
  ];
}

/** Returns the run configuration of its execution keys, with the keys of AgentConfigSnapshot. */
export function dispatcherConfig({
  model,
  harness,
  runner,
  environment_id,
  secrets,
  mcp_servers,
  worker_host,
}: ExecutionBlock): JsonObject {
  const isOwn = harness === undefined || harness.type === "oz";
  const secret = harness?.auth?.source === "managedSecret" ? harness.auth.secret_name : undefined;
  return omitUndefined({
    model_id: model ?? (isOwn ? harness?.model : undefined),
    harness:
      harness &&
      omitUndefined({
        type: harness.type,
        model_id: isOwn ? undefined : harness.model,
        reasoning_level: harness.reasoning_level,
      }),
    harness_auth_secrets:
      harness && secret !== undefined ? { [`${harness.type}_auth_secret_name`]: secret } : undefined,
    runner,
    environment_id,
    mcp_servers,
    worker_host,
    secrets: secrets?.map((name) => ({ name })),
  });
}

/** Returns the deduplication key of its run for an event. */
export const causeKeyOf = (eventUid: string, automationUid: string): string =>
  `automation/${automationUid}/${eventUid}`;

/** Returns an event uid; retries of one idempotent request get the same one. */
export const eventUidOf = (principalUid: string, operation: string, key: string): string =>
  key === "" ? newUid() : uidOf(JSON.stringify([principalUid, operation, key]));

/** The longest chain of automations that start each other. */
const CHAIN_MAX = 5;

/** Returns the automations that caused a root run, oldest first, from its metadata. */
export function chainOf(metadata: Readonly<Record<string, string>>): readonly string[] {
  const { automation_chain: chain = "", automation_uid: uid = "" } = metadata;
  return (chain || uid).split(",").filter((automationUid) => automationUid !== "");
}

/** Returns the chain as metadata; a chain of one is in `automation_uid` already. */
export const chainMetadata = (chain: readonly string[]): Readonly<Record<string, string>> =>
  chain.length > 1 ? { automation_chain: chain.slice(-CHAIN_MAX).join(",") } : {};

/**
 * Returns why an automation must not start because of a run's change: the automation caused the run, or the chain is
 * too long. Returns undefined if it may start.
 */
export function loopOf(automation: Pick<Automation, "uid">, chain: readonly string[]): string | undefined {
  if (chain.includes(automation.uid))
    return "It matches, but the change was made by a run that this automation started.";
  return chain.length >= CHAIN_MAX
    ? `It matches, but the chain of automations that started each other is ${CHAIN_MAX} long.`
    : undefined;
}

export const CREATOR_LEFT =
  "its creator was removed from the team or became a viewer. Enable the automation to run it as yourself.";

/** Disables the automation of a person who lost the right to create runs in the team. */
export const withoutCreator = (automation: Automation, now: Date): Automation => ({
  ...automation,
  enabled: false,
  creatorLostAccess: true,
  version: automation.version + 1,
  updatedAt: now,
});

export const automationDisabled = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "automation_disabled",
    message: "The automation is disabled. Enable it first.",
  });

export const managedByFiles = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "managed_by_files",
    message: "Files define this factory's automations. Change the files instead.",
  });
