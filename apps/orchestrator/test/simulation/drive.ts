import type { LeaseRef, WorkerSession } from "../../src/runs/domain/worker-session.ts";
import { aRun } from "../support/platform.ts";
import { OwnedExecution } from "./agent.ts";
import type { Cast } from "./cast.ts";
import { Turns } from "./turns.ts";
import { answered, useCasesOf, type UseCases, type World } from "./world.ts";

const IN_FLIGHT_MAX = 5;
const RUNS_MAX = 12;

type Act = {
  readonly about?: string;
  readonly isCompletion?: boolean;
  readonly act: (cases: UseCases, step: Step) => Promise<unknown>;
};
type Step = <T>(call: () => Promise<T>) => Promise<T>;

/** Plays a script in a world. A script is a list of numbers, each of which determines one decision. */
export class Drive {
  readonly world: World;
  readonly runs: string[] = [];
  /** Observations at each step. The first difference between two worlds shows here. */
  readonly story: string[] = [];
  /**
   * Follow-ups that were in progress concurrently with another operation on their run, and those concurrent with its
   * completion.
   */
  readonly raced = new Set<number>();
  readonly racedCompletion = new Set<number>();
  readonly #cast: Cast;
  readonly #script: readonly number[];
  readonly #turns = new Turns();
  readonly #owned: OwnedExecution[] = [];
  readonly #gone: OwnedExecution[] = [];
  /** Executions whose worker is gone. */
  readonly #orphans = new Set<number>();
  #workers: WorkerSession[] = [];
  readonly #parents = new Set<string>();
  readonly #following = new Map<number, string>();
  readonly #completing = new Set<string>();
  #cursor = 0;
  #followups = 0;

  constructor(world: World, cast: Cast, script: readonly number[]) {
    this.world = world;
    this.#cast = cast;
    this.#script = script;
  }

  /** Plays the script to its end and finishes everything in progress. Calls `watch` after every step. */
  async play(watch: () => void = () => {}): Promise<void> {
    this.#workers = [];
    for (const worker of this.#cast.workers) this.#workers.push(await this.world.addSession(worker));
    while (this.#cursor < this.#script.length) {
      const { inFlight } = this.#turns;
      this.story.push(
        `${this.#cursor}: ${inFlight} under way, ${this.runs.length} runs, ${this.#owned.length} owned, ${this.#gone.length} gone, ${this.#orphans.size} orphans`,
      );
      if (inFlight === IN_FLIGHT_MAX || (inFlight > 0 && this.#choose(2) === 0))
        await this.#turns.take(this.#choose(inFlight));
      else await this.#begin(this.#next());
      watch();
    }
    await this.#turns.finish();
  }

  #choose(below: number): number {
    return (this.#script[this.#cursor++] ?? 0) % below;
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from.length === 0 ? undefined : from[this.#choose(from.length)];
  }

  async #begin(next: Act | undefined): Promise<void> {
    if (!next) return;
    for (const [n, runUid] of this.#following) if (runUid === next.about) this.#note(n, next.isCompletion);
    await this.#turns.begin(next.about, (step) => next.act(useCasesOf(this.world, step), step));
  }

  #note(followup: number, isCompletion = false): void {
    this.raced.add(followup);
    if (isCompletion) this.racedCompletion.add(followup);
  }

  /** Picks a run, preferably one with an operation in progress. */
  #aRun(): string | undefined {
    const { abouts } = this.#turns;
    return abouts.length > 0 && this.#choose(4) > 0 ? this.#pick(abouts) : this.#pick(this.runs);
  }

  #ownedBy(runUid: string | undefined): OwnedExecution | undefined {
    return this.#owned.find((execution) => execution.runUid === runUid) ?? this.#pick(this.#owned);
  }

  #next(): Act | undefined {
    const what = this.#choose(25);
    this.story.push(`does ${what}`);
    if (what === 0) return this.#create(undefined);
    if (what < 4) return this.#create(this.#pick(this.#owned)?.runUid);
    if (what < 8) return this.#follow(this.#aRun());
    if (what === 8) return this.#follow(this.#gone.at(-1)?.runUid); // a run that has just ended or begun to wait
    if (what === 9) return this.#cancel(this.#aRun());
    if (what < 14) return this.#work(this.#pick(this.#workers)!, 1 + this.#choose(3), this.#choose(16));
    if (what < 17) return this.#proceed(this.#ownedBy(this.#aRun()), 1 + this.#choose(5));
    if (what === 17) return this.#heartbeat(this.#ownedBy(this.#aRun()));
    if (what === 24) return this.#interrupt(this.#aRun());
    if (what < 22) return this.#complete(this.#ownedBy(this.#aRun()), this.#choose(7));
    return this.#misfortune(this.#choose(8));
  }

  #create(parentRunUid: string | undefined): Act | undefined {
    if (this.runs.length === RUNS_MAX) return undefined;
    const caller = this.#cast.callers[this.#choose(2)]!;
    const agentUid = this.#cast.agents[this.#choose(3)];
    const factory = this.#choose(3) === 0 ? { factoryUid: this.#cast.factoryUid } : {};
    const request = aRun(caller, {
      prompt: "Begin.",
      agentUid,
      ...factory,
      parentRunUid,
    });
    return {
      act: async (cases) => {
        const made = await answered(cases.createRun(caller, request));
        if (typeof made === "string") this.runs.push(made);
        if (typeof made === "string" && parentRunUid) this.#parents.add(parentRunUid);
      },
    };
  }

  #follow(runUid: string | undefined): Act | undefined {
    if (!runUid) return undefined;
    const n = ++this.#followups;
    if (this.#turns.abouts.includes(runUid)) this.#note(n, this.#completing.has(runUid));
    const isRepeated = this.#choose(6) === 0;
    const request = {
      target: { runUid },
      message: `f${n}`,
      mode: "normal" as const,
      attachmentUids: [],
      idempotencyKey: `key ${n}`,
    };
    const send = (cases: UseCases) => answered(cases.followUp(this.#everybody, request));
    const act = (cases: UseCases) => {
      this.#following.set(n, runUid);
      return Promise.all(isRepeated ? [send(cases), send(cases)] : [send(cases)]).finally(() =>
        this.#following.delete(n),
      );
    };
    return { about: runUid, act };
  }

  #cancel(runUid: string | undefined): Act | undefined {
    const tree = this.#choose(2) === 0;
    return runUid
      ? { about: runUid, act: (cases) => answered(cases.cancel(this.#everybody, { runUid, tree })) }
      : undefined;
  }

  #interrupt(runUid: string | undefined): Act | undefined {
    return runUid
      ? { about: runUid, act: (cases) => answered(cases.interrupt(this.#everybody, { runUid })) }
      : undefined;
  }

  /**
   * Claims and accepts. Depending on `fate`, the worker dies in between, returns the offers, or a secret is missing.
   */
  #work(session: WorkerSession, slots: number, fate: number): Act {
    return {
      act: async (cases) => {
        const offers = await cases.claim(session, slots);
        if (fate === 0) return this.#forget(offers);
        if (fate === 1) return cases.decline(session, offers);
        const { assignments, lost } = await cases.accept(session, offers, fate === 2);
        this.story.push(
          `is given ${assignments.map(({ attempt, inputs, directives }) => `attempt ${attempt} ${inputs.map(({ text }) => text).join()} ${directives.map(({ kind, seq }) => `${seq} ${kind}`).join()}`).join("; ")}; ${lost.length} lost`,
        );
        for (const assignment of assignments) this.#owned.push(new OwnedExecution(session, assignment));
        return this.#forget(lost);
      },
    };
  }

  #forget(refs: readonly LeaseRef[]): void {
    for (const { executionId } of refs) this.#orphans.add(executionId);
  }

  /** Performs the agent's next `steps`: it starts, then receives one message after another. */
  #proceed(execution: OwnedExecution | undefined, steps: number): Act | undefined {
    if (!execution || execution.isBusy || execution.next === undefined) return undefined;
    return this.#busy(execution, async (cases) => {
      for (let n = 0; n < steps && execution.next !== undefined; n++) {
        const batch = execution.next === "start" ? execution.startBatch() : execution.seeBatch();
        if ((await cases.append(execution.session, batch)).error === "LEASE_LOST") return this.#lose(execution);
      }
    });
  }

  #heartbeat(execution: OwnedExecution | undefined): Act | undefined {
    if (!execution) return undefined;
    const heartbeat = execution.heartbeat(this.#choose(3) > 0);
    return {
      about: execution.runUid,
      act: async (cases) => {
        const { leases, directives } = await cases.heartbeat(execution.session, heartbeat);
        execution.receive(directives);
        this.story.push(
          `receives ${leases[0]!.status} ${directives.map(({ attempt, seq, kind }) => `${attempt}.${seq} ${kind}`).join(", ")}`,
        );
        if (leases[0]!.status === "STOP") execution.isStopped = true;
        if (leases[0]!.status === "LOST") this.#lose(execution);
      },
    };
  }

  #complete(execution: OwnedExecution | undefined, choice: number): Act | undefined {
    if (!execution || execution.isBusy) return undefined;
    const inSetup = ["FAILED", "FAILED", "ERROR"] as const;
    const started = this.#parents.has(execution.runUid)
      ? (["DONE", "WAITING", "WAITING", "WAITING", "WAITING", "FAILED", "BLOCKED"] as const)
      : (["DONE", "DONE", "WAITING", "FAILED", "BLOCKED", "DONE", "ERROR"] as const);
    const isRetained = !execution.hasStarted && !execution.isStopped && !execution.isRetained && choice % 3 === 1;
    const outcome = execution.isRetained
      ? "FAILED"
      : execution.isStopped
        ? "CANCELLED"
        : execution.hasStarted
          ? started[choice % started.length]!
          : inSetup[choice % inSetup.length]!;
    const completion = execution.completion(outcome, choice % 2 ? "any" : "all", isRetained);
    this.#completing.add(execution.runUid);
    const act = async (cases: UseCases) => {
      const { error } = await cases
        .complete(execution.session, completion)
        .finally(() => this.#completing.delete(execution.runUid));
      if (error === "EVENTS_PENDING") throw new Error("every event was acknowledged before");
      if (isRetained && error === "") execution.retain();
      else this.#lose(execution);
    };
    return { ...this.#busy(execution, act), isCompletion: true };
  }

  #busy(execution: OwnedExecution, act: (cases: UseCases) => Promise<void>): Act {
    execution.isBusy = true;
    return { about: execution.runUid, act: (cases) => act(cases).finally(() => (execution.isBusy = false)) };
  }

  #lose(execution: OwnedExecution): void {
    const index = this.#owned.indexOf(execution);
    if (index < 0) return;
    this.#owned.splice(index, 1);
    this.#gone.push(execution);
    this.#orphans.add(execution.ref.executionId);
  }

  #misfortune(kind: number): Act | undefined {
    const execution = this.#pick(this.#owned);
    switch (kind) {
      case 0: // the worker dies
        if (execution) this.#lose(execution);
        return undefined;
      case 1: // the worker is frozen or disconnected for too long; it may come back
        return {
          act: (_cases, step) =>
            step(async () => (execution ? this.world.expire(execution.ref.executionId) : undefined)),
        };
      case 2: {
        const orphan = this.#pick([...this.#orphans]);
        return { act: (_cases, step) => step(async () => (orphan === undefined ? undefined : this.#pass(orphan))) };
      }
      case 3: {
        // The response was lost: the same request is sent again, at any later time.
        const late = this.#pick([...this.#gone, ...this.#owned]);
        const { lastBatch: batch, lastCompletion: completion } = late ?? {};
        if (!late || late.isBusy) return undefined;
        return {
          about: late.runUid,
          act: async (cases) => [
            batch && (await cases.append(late.session, batch)),
            this.#gone.includes(late) && completion && (await cases.complete(late.session, completion)),
          ],
        };
      }
      case 4: // the worker shuts down gracefully
      case 5: {
        // The worker cannot execute it.
        if (!execution || execution.isBusy) return undefined;
        return this.#busy(execution, async (cases) => {
          await cases.returnLease(execution.session, execution.ref, kind === 5);
          this.#lose(execution);
        });
      }
      default:
        return { act: (cases) => cases.reap() };
    }
  }

  async #pass(executionId: number): Promise<void> {
    await this.world.expire(executionId);
    await this.world.endGrace(executionId);
  }

  /** Lets the remaining workers finish, and reassigns executions of dead workers, until nothing is left. */
  async end(): Promise<void> {
    const finisher = await this.world.addSession(this.#cast.finisher);
    const alone = async (next: Act | undefined) => {
      await this.#begin(next);
      await this.#turns.finish();
    };
    for (let round = 0; round < 100; round++) {
      for (const orphan of this.#orphans) await this.#pass(orphan);
      this.#orphans.clear();
      await alone({ act: (cases) => cases.reap() });
      await alone(this.#work(finisher, 100, 9));
      await alone(this.#work(this.#workers[2]!, 2, 9));
      if (this.#owned.length === 0 && this.#orphans.size === 0) return;
      for (const execution of [...this.#owned]) {
        await alone(this.#heartbeat(execution));
        if (!execution.isStopped) await alone(this.#proceed(execution, Infinity));
        if (this.#owned.includes(execution)) await alone(this.#complete(execution, 0));
      }
    }
    throw new Error("there is no end");
  }

  /** Returns a caller with all rights to every run. */
  get #everybody() {
    const [first, second] = this.#cast.callers;
    return { ...first!, teams: [...first!.teams, ...second!.teams] };
  }
}
