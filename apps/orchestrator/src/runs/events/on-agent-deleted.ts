import type { EventHandler } from "@millwright/events";
import { sendWork } from "@millwright/work";
import { CANCEL_RUNS_OF_AGENT, type RunsOfAgent } from "../usecases/cancel-runs-of-agent.ts";

/** Published by identity when an agent and all its keys are deleted. */
export const AGENT_DELETED = "millwright.agent.deleted.v1";

/**
 * The delay of the second cancellation. By then, any run whose creation started before the agent was deleted is
 * committed.
 */
const SECOND_CANCELLATION_MS = 120_000;

/** Enqueues the cancellation of the deleted agent's runs, as its deleter: they have no agent left to act as. */
export const onAgentDeleted: EventHandler = async (tx, { entityUid, teamUid, actor, occurredAt }) => {
  if (!teamUid) throw new Error("agent.deleted without a team");
  const payload: RunsOfAgent = { agent_uid: entityUid, team_uid: teamUid, actor: { type: actor.type, uid: actor.uid } };
  await sendWork(tx, { kind: CANCEL_RUNS_OF_AGENT, key: entityUid, teamUid, payload });
  await sendWork(tx, {
    kind: CANCEL_RUNS_OF_AGENT,
    key: `${entityUid} latecomers`,
    teamUid,
    payload,
    runAt: new Date(occurredAt.getTime() + SECOND_CANCELLATION_MS),
  });
};
