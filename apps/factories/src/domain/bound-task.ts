import type { Item } from "@millwright/code-host-events";
import type { Automation } from "./automation.ts";
import type { Task } from "./task.ts";

/** A task that is about an item of a code host, and where its conversation stands. Source: factory-files §6.4. */
export type BoundTask = {
  readonly task: Pick<Task, "uid" | "conversationUid">;
  /** Of the conversation's newest run; absent: not known, or not for the team to see. */
  readonly at?: {
    readonly factoryUid?: string | undefined;
    readonly agentUid?: string | undefined;
    readonly agentName?: string | undefined;
  };
};

/** What an event on an item goes on with, instead of starting work of its own. */
export type Continuation = {
  readonly taskUid: string;
  readonly conversationUid: string;
  /** A build is the cause. */ readonly isForBuild?: true;
};

/** How often within a day an automation continues a task for builds: nobody writes them, and what goes on may cause the next one. Those that are decided at the same moment may exceed it by a few. */
export const BUILDS_PER_DAY_MAX = 10;

/** How often an automation has continued a task for builds. */
export type BuildsOfTask = { readonly automationUid: string; readonly taskUid: string; readonly times: number };

/** Why an automation does not continue a task for one more build; undefined: it does. */
export function tooManyBuilds(
  continues: Continuation | undefined,
  { uid }: Pick<Automation, "uid">,
  builds: readonly BuildsOfTask[],
): string | undefined {
  const times =
    builds.find(({ automationUid, taskUid }) => automationUid === uid && taskUid === continues?.taskUid)?.times ?? 0;
  if (times < BUILDS_PER_DAY_MAX) return undefined;
  return `It matches, but it has continued task ${continues!.taskUid} for ${times} builds within a day. Replay the delivery to continue it once more.`;
}

/**
 * The task that an automation continues, the newest one first: its conversation is held by the agent that the automation is for. Another agent's
 * work is a run of its own, as who reviews is not who wrote.
 */
export function continuationOf(
  bound: readonly BoundTask[],
  { factoryUid, rules }: Pick<Automation, "factoryUid" | "rules">,
  foremanUid: string | undefined,
): Continuation | undefined {
  const found = bound.find(
    ({ at }) =>
      at?.factoryUid === factoryUid &&
      (rules.agent === undefined
        ? at.agentUid !== undefined && at.agentUid === foremanUid
        : at.agentName === rules.agent),
  );
  return found && { taskUid: found.task.uid, conversationUid: found.task.conversationUid };
}

/** As long as values of metadata are. */
const VALUE_BYTES_MAX = 256;

/** What the metadata of a run say of the item that it is about: a task that is made of it is bound to the item. */
export function ticketMetadata(provider: string, item: Item | undefined): Readonly<Record<string, string>> {
  if (!item || !isValue(item.id)) return {};
  return { ticket_source: provider, ticket_id: item.id, ...(isValue(item.url) && { ticket_url: item.url }) };
}

const isValue = (text: string): boolean =>
  Buffer.byteLength(text) <= VALUE_BYTES_MAX && text.isWellFormed() && !/\p{Cc}/u.test(text);
