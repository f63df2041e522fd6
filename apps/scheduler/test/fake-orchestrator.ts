import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { actorOf, type Caller } from "@millwright/caller";
import { events, orchestrator } from "@millwright/contracts";
import { DomainError, notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices, callerOf } from "@millwright/rpc";

export type FakeRun = { uid: string; cause: string; state: string; request: orchestrator.RunRequest; caller: Caller };

/** Runs in memory, one per cause, and their feed. */
export class FakeOrchestrator {
  static readonly allow = {
    ...allowServices(events.EventFeedService, { read: ["scheduler"] }),
    ...allowServices(orchestrator.RunService, {
      createRuns: ["scheduler"],
      listRuns: ["scheduler"],
      cancelRun: ["scheduler"],
    }),
  };
  readonly runs = new Map<string, FakeRun>();
  readonly batches: number[] = [];
  readonly cancelled: string[] = [];
  feed: { type: string; entityUid: string; cause: string; payload: JsonObject }[] = [];
  /** Called before a batch is created; may refuse it. */
  beforeCreate: (requests: readonly orchestrator.RunRequest[]) => Promise<void> | void = () => {};
  /** Called after a batch was created, before the response. */
  beforeResponse: (requests: readonly orchestrator.RunRequest[]) => Promise<void> | void = () => {};
  beforeCancel: () => void = () => {};

  routes(router: ConnectRouter): void {
    router.service(orchestrator.RunService, {
      createRuns: async ({ runs: requests }, context) => {
        await this.beforeCreate(requests);
        this.batches.push(requests.length);
        const created = requests.map((request) => this.#create(request, callerOf(context)));
        await this.beforeResponse(requests);
        return { runs: created };
      },
      listRuns: async ({ scheduleUid, states }, context) => {
        const visible = [...this.runs.values()].filter(
          ({ request, caller }) =>
            request.schedule?.scheduleId === scheduleUid && actorOf(caller).uid === actorOf(callerOf(context)).uid,
        );
        const listed = visible.filter(({ state }) => states.includes(state));
        return { runs: listed.map(({ uid, cause }) => ({ uid, causeKey: cause })) };
      },
      cancelRun: async ({ runUid }) => {
        this.beforeCancel();
        this.cancelled.push(runUid);
        this.finish(runUid, "CANCELLED");
        return {};
      },
    });
    router.service(events.EventFeedService, {
      read: async ({ after, limit }) => ({
        logUid: "0199a000-0000-7000-8000-000000000000",
        head: BigInt(this.feed.length),
        events: this.feed.slice(Number(after), Number(after) + limit).map((event, index) => ({
          ...event,
          uid: newUid(),
          position: after + BigInt(index) + 1n,
          entity: "run",
          entityVersion: 1n,
          actorType: "user",
          actorUid: "u-1",
          requestId: "r-1",
          occurredAt: timestampFromDate(new Date("2026-11-20T12:00:00Z")),
        })),
      }),
    });
  }

  /** Ends a run and publishes its event. */
  finish(uid: string, state: string): void {
    const run = [...this.runs.values()].find((candidate) => candidate.uid === uid);
    if (!run) throw notFound("run");
    if (!["QUEUED", "INPROGRESS"].includes(run.state))
      throw new DomainError({ kind: "invalid_argument", reason: "run_already_finished", message: "Finished." });
    run.state = state;
    this.feed.push({
      type: "millwright.run.finished.v1",
      entityUid: uid,
      cause: "",
      payload: { run_uid: uid, source: "SCHEDULED_AGENT", state },
    });
  }

  #create(request: orchestrator.RunRequest, caller: Caller) {
    const cause = request.causeKey ?? "";
    const key = `${request.ownerUid} ${cause}`;
    const known = this.runs.get(key);
    const run = known ?? { uid: newUid(), cause, state: "QUEUED", request, caller };
    if (!known) {
      this.runs.set(key, run);
      this.feed.push({
        type: "millwright.run.created.v1",
        entityUid: run.uid,
        cause,
        payload: { run_uid: run.uid, source: request.source },
      });
    }
    return { run: { uid: run.uid }, created: !known };
  }
}
