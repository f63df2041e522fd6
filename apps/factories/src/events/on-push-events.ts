import type { Sql } from "@millwright/database";
import type { EventHandlers } from "@millwright/events";
import { enqueueWork } from "@millwright/work";
import { REGISTER_PUSH } from "../domain/branch.ts";

/** As the code hosts' headers name it. */
const PUSHES: readonly unknown[] = ["push", "Push Hook"];

export type OnPushEventsDeps = {
  /** Whether the team tracks any branch at a code host. */
  tracksAny: (tx: Sql, teamUid: string) => Promise<boolean>;
};

/** Pushes that a code host has told: they may have moved a tracked branch. What was pushed is in the delivery, which is elsewhere. */
export const onPushEvents = ({ tracksAny }: OnPushEventsDeps): EventHandlers => ({
  async "millwright.code_host_delivery.accepted.v1"(tx, { entityUid: deliveryUid, teamUid, payload }) {
    if (teamUid === undefined || !PUSHES.includes(payload["event"]) || !(await tracksAny(tx, teamUid))) return;
    await enqueueWork(tx, { kind: REGISTER_PUSH, key: deliveryUid, payload: { deliveryUid, teamUid }, teamUid });
  },
});
