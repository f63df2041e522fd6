import { clone } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import type { ForgeResponse } from "@millwright/code-host";
import { events, orchestrator } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices } from "@millwright/rpc";
import { serveFeed, type FakeEvent } from "@millwright/testing";
import { pageOf } from "./page-of.ts";
import type { FakeRun } from "./run-samples.ts";

/** The only connection. */
export const CODE_HOST = newUid();
export type ReadCodeHost = (request: orchestrator.ReadCodeHostRequest) => Promise<ForgeResponse>;

/** Facts of runs and the run feed in memory, and code hosts as the orchestrator reads them. */
export class FakeOrchestrator {
  static readonly allow = {
    ...allowServices(events.EventFeedService, { read: ["metrics"] }),
    ...allowServices(orchestrator.FactsService, { listRunFacts: ["metrics"], walkRuns: ["metrics"] }),
    ...allowServices(orchestrator.CatalogService, { readCodeHost: ["metrics"] }),
  };
  /** What ListRunFacts returns; tests change them in place. */
  readonly runs = new Map<string, FakeRun>();
  readonly feed: FakeEvent[] = [];
  /** While set, events wait here instead of reaching the feed. */
  delayed: FakeEvent[] | undefined;
  /** The runs of every ListRunFacts. */
  readonly requests: string[][] = [];
  /** Returns what ListRunFacts returns, such as older snapshots; may throw. */
  answer: (runs: FakeRun[]) => Promise<FakeRun[]> | FakeRun[] = (runs) => runs;
  /** Answers ReadCodeHost; undefined: no connection serves any repository. */
  readCodeHost: ReadCodeHost | undefined;
  readonly #now: () => Date;

  constructor(now: () => Date) {
    this.#now = now;
  }

  /** Adds runs, or replaces them, and publishes an event of each. */
  put(...runs: FakeRun[]): void {
    for (const run of runs) {
      this.runs.set(run.uid, run);
      this.publish(run.uid, run.version === 1n ? "created" : run.finishedAt ? "finished" : "state_changed");
    }
  }

  /** Applies `change` to a run, raises its version and publishes the event. */
  change(uid: string, change: (run: FakeRun) => void): FakeRun {
    const run = this.runs.get(uid)!;
    change(run);
    run.version += 1n;
    this.put(run);
    return run;
  }

  publish(uid: string, happened: "created" | "state_changed" | "finished"): void {
    const run = this.runs.get(uid)!;
    const event: FakeEvent = {
      type: `millwright.run.${happened}.v1`,
      entityUid: uid,
      entityVersion: Number(run.version),
      occurredAt: this.#now(),
      payload: { run_uid: uid },
      teamUid: run.ownerType === "team" ? run.ownerUid : undefined,
    };
    (this.delayed ?? this.feed).push(event);
  }

  /** Moves delayed events to the feed, rearranged: in another order, repeated, or without some. */
  release(rearrange: (delayed: FakeEvent[]) => FakeEvent[] = (delayed) => delayed): void {
    this.feed.push(...rearrange(this.delayed ?? []));
    this.delayed = undefined;
  }

  routes(router: ConnectRouter): void {
    router.service(orchestrator.FactsService, {
      listRunFacts: async ({ runUids }) => {
        this.requests.push([...runUids]);
        const found = runUids.flatMap((uid) => this.runs.get(uid) ?? []);
        return { runs: (await this.answer(found)).map((run) => clone(orchestrator.RunFactsSchema, run)) };
      },
      walkRuns: ({ pageSize, pageToken }) => {
        const { page: runUids, nextPageToken } = pageOf([...this.runs.keys()].toSorted(), pageSize, pageToken);
        return { runUids, nextPageToken };
      },
    });
    router.service(orchestrator.CatalogService, {
      readCodeHost: async (request) => {
        if (!this.readCodeHost)
          throw invalidArgument("code_host_not_connected", "No connection serves the repository.");
        const { body, answeredAt, ...answer } = await this.readCodeHost(request);
        const bytes = new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body));
        return { ...answer, codeHostUid: CODE_HOST, body: bytes, answeredAt: timestampFromDate(answeredAt) };
      },
    });
    serveFeed(router, "0199a000-0000-7000-8000-000000000001", this.feed);
  }

  /** Forgets everything. */
  clear(): void {
    this.runs.clear();
    this.feed.length = this.requests.length = 0;
    this.delayed = undefined;
    this.readCodeHost = undefined;
    this.answer = (runs) => runs;
  }
}
