import type { Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { aCaller } from "../support/platform.ts";
import type { SessionRow } from "./rows.ts";

/** The participants of a simulation: the same in every world, so that worlds can be compared. */
export type Cast = {
  readonly callers: readonly Caller[];
  readonly agents: readonly string[];
  readonly factoryUid: string;
  readonly workers: readonly SessionRow[];
  /** A worker that joins at the end and executes everything that is left. */
  readonly finisher: SessionRow;
};

export function aCast(): Cast {
  const callers = [aCaller(), aCaller()];
  const worker = (slots: number, more: Partial<SessionRow> = {}): SessionRow => ({
    uid: newUid(),
    workerHost: `host-${newUid()}`,
    slots,
    harnessTypes: ["oz"],
    images: [],
    ...more,
  });
  return {
    callers,
    agents: [newUid(), newUid()],
    factoryUid: newUid(),
    workers: [worker(2), worker(3), worker(2, { teamUid: callers[0]!.teams[0]!.teamUid })],
    finisher: worker(100),
  };
}
