import { parseAutomation, type AutomationPart, type ExecutionBlock } from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import { isUuid, newUid, uidOf, type FactoryUid, type TeamUid, type Uid } from "@millwright/ids";
import { canonicalJson, present } from "@millwright/json";
import type { JsonObject } from "@millwright/json";

export type AutomationUid = Uid<"automation">;

/** What starts when: triggers, prompt, agent, and the execution keys that override the agent's. `name` and `enabled` are the record's. */
export type AutomationRules = Omit<AutomationPart, "name" | "enabled">;

/** Work of a factory that starts by itself. Source: factory-files §6. */
export type Automation = {
  readonly uid: AutomationUid;
  readonly factoryUid: FactoryUid;
  readonly teamUid: TeamUid;
  readonly name: string;
  readonly enabled: boolean;
  readonly rules: AutomationRules;
  readonly management: "live" | "files";
  /** Of files: what the file said when it was projected. */
  readonly defined: AutomationPart | null;
  /** The principal for whom its runs are made. */
  readonly creator: { readonly type: string; readonly uid: string };
  /** The creator was removed from the team or became a viewer; the automation is disabled. */
  readonly creatorLeft: boolean;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly lastFiredAt: Date | null;
};

/** Limits of ours: what one event may make a factory look at, and what one request may say. */
export const AUTOMATIONS_PER_FACTORY_MAX = 200;
const NAME_CHARACTERS_MAX = 100;
const PROMPT_BYTES_MAX = 256 * 1024;
const TRIGGERS_MAX = 50;
const DEFINITION_BYTES_MAX = 128 * 1024;

/** What is wrong with an automation; codes are those of files. */
export type AutomationFault = { readonly code: string; readonly message: string };
/** An automation as it is asked for. With faults, `part` is what could be read of it. */
export type ReadAutomation = { readonly part: AutomationPart | undefined; readonly faults: readonly AutomationFault[] };

/**
 * Reads an automation as it is asked for, by the rules of files.
 *
 * Errors: invalid_automation, when it is beyond its bounds.
 */
export function readAutomation(asked: JsonObject): ReadAutomation {
  const { name, prompt, ...keys } = asked;
  if (typeof name !== "string" || name.trim() === "" || name.trim().length > NAME_CHARACTERS_MAX)
    throw invalid(`name has 1 to ${NAME_CHARACTERS_MAX} characters.`);
  if (typeof prompt !== "string" || !prompt.isWellFormed() || Buffer.byteLength(prompt) > PROMPT_BYTES_MAX)
    throw invalid(
      `prompt must be text of at most ${PROMPT_BYTES_MAX} bytes${typeof prompt === "string" ? ` (got ${Buffer.byteLength(prompt)})` : ""}.`,
    );
  if (
    Buffer.byteLength(JSON.stringify(keys)) > DEFINITION_BYTES_MAX ||
    (Array.isArray(keys["triggers"]) && keys["triggers"].length > TRIGGERS_MAX)
  ) {
    throw invalid(
      `An automation has at most ${TRIGGERS_MAX} triggers, and ${DEFINITION_BYTES_MAX} bytes without its prompt.`,
    );
  }
  const { automation, draft, faults } = parseAutomation(name.trim(), { ...keys, prompt });
  const part = automation ?? draft;
  const found = faults.map(({ code, message }): AutomationFault => ({ code, message }));
  if (part?.triggers.some(({ filter }) => filter["webhook_ids"]?.in?.some((uid) => !isUuid(uid))))
    found.push({ code: "FF_INVALID_REFERENCE", message: "webhook_ids takes the uid of a webhook." });
  if (!name.isWellFormed()) found.push({ code: "FF_INVALID_VALUE", message: "name is not a text." });
  return { part, faults: found };
}

/** The whole automation. Errors: invalid_automation; every fault is a detail. */
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

/** An automation that begins now; with `defined` it is a file's. */
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
    defined: at.management === "files" ? part : null,
    creatorLeft: false,
    version: 1,
    createdAt: now,
    updatedAt: now,
    lastFiredAt: null,
  };
}

/** The automation as its maker says it now. */
export function changeAutomation(automation: Automation, part: AutomationPart, now: Date): Automation {
  const { name, enabled, ...rules } = part;
  return { ...automation, name, enabled, rules, version: automation.version + 1, updatedAt: now };
}

/** Whether two say the same, but for the switch. */
export const isSameButSwitch = (
  automation: Automation,
  { name, enabled: _switch, ...rules }: AutomationPart,
): boolean => name === automation.name && canonicalJson(rules) === canonicalJson(automation.rules);

export type ProjectedChange = { readonly happened: "created" | "updated" | "deleted"; readonly automation: Automation };

/**
 * What a definition makes of a factory's file automations: each keeps its uid while its file is there, and its switch while
 * the file says the same; without its file it is deleted.
 */
export function projectAutomations(
  before: readonly Automation[],
  parts: readonly AutomationPart[],
  at: Pick<Automation, "factoryUid" | "teamUid" | "creator">,
  now: Date,
): ProjectedChange[] {
  const known = new Map(before.map((one) => [one.name, one]));
  const gone = before.filter(({ name }) => parts.every((part) => part.name !== name));
  return [
    ...gone.map((one): ProjectedChange => ({
      happened: "deleted",
      automation: { ...one, version: one.version + 1, updatedAt: now },
    })),
    ...parts.flatMap((part): ProjectedChange[] => {
      const old = known.get(part.name);
      if (!old) return [{ happened: "created", automation: newAutomation(part, { ...at, management: "files" }, now) }];
      if (canonicalJson(old.defined) === canonicalJson(part)) return [];
      return [
        {
          happened: "updated",
          automation: { ...changeAutomation(old, part, now), defined: part, creator: at.creator },
        },
      ];
    }),
  ];
}

/** What its execution keys say of a run, in the keys of AgentConfigSnapshot (fields-runs §4). */
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
  return present({
    model_id: model ?? (isOwn ? harness?.model : undefined),
    harness:
      harness &&
      present({
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

/** Its one run for an event, for ever. */
export const causeKeyOf = (eventUid: string, automationUid: string): string =>
  `automation/${automationUid}/${eventUid}`;

/** An event's uid that repetitions of one request share. */
export const eventUidOf = (principalUid: string, operation: string, key: string): string =>
  key === "" ? newUid() : uidOf(JSON.stringify([principalUid, operation, key]));

/** After so many automations that have set each other off, the next one does not start. */
const CHAIN_MAX = 5;

/** What the metadata of a root run say: by which automations it came about, the first one first. */
export function chainOf(metadata: Readonly<Record<string, string>>): readonly string[] {
  const { automation_chain: chain = "", automation_uid: uid = "" } = metadata;
  return (chain || uid).split(",").filter((one) => one !== "");
}

/** The same as metadata: a chain of one is told by the automation alone. */
export const chainMetadata = (chain: readonly string[]): Readonly<Record<string, string>> =>
  chain.length > 1 ? { automation_chain: chain.slice(-CHAIN_MAX).join(",") } : {};

/**
 * Why an automation must not start by what a run has done: the run came about by itself, or at the end of a long chain.
 * Undefined: it may.
 */
export function loopOf(automation: Pick<Automation, "uid">, chain: readonly string[]): string | undefined {
  if (chain.includes(automation.uid))
    return "It matches, but a run that this automation has brought about made the change.";
  return chain.length >= CHAIN_MAX
    ? `It matches, but ${CHAIN_MAX} automations have set each other off already.`
    : undefined;
}

export const CREATOR_LEFT =
  "its creator was removed from the team or became a viewer. Enable the automation to run it as yourself.";

/** Disables the automation of a person who may not create runs in the team any more. */
export const withoutCreator = (automation: Automation, now: Date): Automation => ({
  ...automation,
  enabled: false,
  creatorLeft: true,
  version: automation.version + 1,
  updatedAt: now,
});

export const automationDisabled = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "automation_disabled",
    message: "The automation is disabled; enable it first.",
  });

export const managedByFiles = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "managed_by_files",
    message: "Files define this factory's automations; change them there.",
  });
