import type { EventHandler } from "@millwright/events";
import { sendWork } from "@millwright/work";
import { CANCEL_RUNS_OF_AGENT, type RunsOfAgent } from "../usecases/cancel-runs-of-agent.ts";

/** Published by identity with the deletion of an agent and all its keys. */
export const AGENT_DELETED = "millwright.agent.deleted.v1";

/** A run that was being made meanwhile, of an agent that was still there, is written by then. */
const LATECOMERS_MS = 120_000;

/** Nobody is left whom its runs could act as: they are cancelled, by whoever deleted it. */
export const onAgentDeleted: EventHandler = async (tx, { entityUid, teamUid, actor, occurredAt }) => {
  if (!teamUid) throw new Error("agent.deleted without a team");
  const payload: RunsOfAgent = { agent_uid: entityUid, team_uid: teamUid, actor: { type: actor.type, uid: actor.uid } };
  await sendWork(tx, { kind: CANCEL_RUNS_OF_AGENT, key: entityUid, teamUid, payload });
  await sendWork(tx, {
    kind: CANCEL_RUNS_OF_AGENT,
    key: `${entityUid} latecomers`,
    teamUid,
    payload,
    runAt: new Date(occurredAt.getTime() + LATECOMERS_MS),
  });
};
