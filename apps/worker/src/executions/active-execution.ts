import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { worker } from "@millwright/contracts";
import { bestEffort, isDomainError, type DomainError } from "@millwright/errors";
import type { Logger, Span, Tracer } from "@millwright/telemetry";
import { secretsOf } from "../git/host-git.ts";
import { LeaseClock } from "../leases/lease-clock.ts";
import type { Moment } from "../time/moment.ts";
import type { RenewableLease } from "../leases/lease-renewer.ts";
import { literalSecrets } from "../mcp/server-settings.ts";
import type { Coalescer } from "../protocol/coalescer.ts";
import { EventSpool } from "../spool/event-spool.ts";
import { EventStream } from "../spool/event-stream.ts";
import { Masker } from "../spool/masker.ts";
import type { ParkedWorkspace } from "../state/parked-workspaces.ts";
import { removeTree } from "../sandbox/remove-tree.ts";
import type { Completions } from "./complete-execution.ts";
import { DirectiveQueue } from "./directive-queue.ts";
import type { ExecutionContext, ExecutionPhase, ExecutionResult, RunExecution } from "../context/execution-context.ts";
import { ExecutionCancelled, LeaseLost } from "../context/execution-errors.ts";
import { outcomeOf, returnOf, savesWorkspace, type LeaseReturn, type Settled } from "./execution-outcome.ts";
import { LiveText, textDeltaSender } from "./live-text.ts";
import { OutcomeReporter } from "./outcome-reporter.ts";
import { Sandboxes } from "./sandboxes.ts";
import type { StartFailures } from "./start-failures.ts";
import { TerminationEscalation } from "./termination-escalation.ts";
import { createContext, type ContextDeps } from "./create-context.ts";
import { traceExecution } from "./trace-execution.ts";

export type ActiveExecutionDeps = ContextDeps & {
  readonly appends: Coalescer<worker.EventBatch, worker.AppendResult>;
  readonly completions: Completions;
  readonly log: Logger;
  readonly tracer?: Tracer | undefined;
  readonly runExecution: RunExecution;
  /** Shared by all executions of the worker. */
  readonly startFailures: StartFailures;
  /** Sends a heartbeat immediately; used to report acknowledged directives before the end. */
  readonly heartbeatNow: () => Promise<boolean>;
};

/** Outcomes after which the run may continue soon. */
const PARKING: ReadonlySet<ExecutionResult["outcome"]> = new Set(["DONE", "BLOCKED", "WAITING"]);

/** One leased execution and everything that runs for it, from Accept until its last sandbox has ended. */
export class ActiveExecution implements RenewableLease {
  readonly executionId: bigint;
  readonly attempt: number;
  readonly #deps: ActiveExecutionDeps;
  readonly #log: Logger;
  readonly #assignment: worker.Assignment;
  readonly #lease: LeaseClock;
  readonly #masker: Masker;
  readonly #spool: EventSpool;
  readonly #events: EventStream;
  readonly #directives: DirectiveQueue;
  readonly #live: LiveText;
  readonly #sandboxes: Sandboxes;
  /** The sandboxes that save the workspace after the execution was stopped. The escalation does not end them. */
  readonly #savingSandboxes: Sandboxes;
  readonly #escalation: TerminationEscalation;
  readonly #reporter: OutcomeReporter;
  /** Aborted when the execution must end, for any reason. */
  readonly #stop = new AbortController();
  /** Aborted only when the worker no longer owns the attempt. This also ends the last reports. */
  readonly #lost = new AbortController();
  /** Aborted when debug windows must end. */
  readonly #leave = new AbortController();
  #saved: ParkedWorkspace | undefined;
  #isReported = false;
  #phase: ExecutionPhase = "SETUP";
  #runToken: string;
  #reportedSeq = 0n;

  constructor(deps: ActiveExecutionDeps, assignment: worker.Assignment, acceptSent: Moment) {
    const { executionId, attempt, runUid, runToken, secrets, repositories, providerCredentials, mcpServers } =
      assignment;
    this.executionId = executionId;
    this.attempt = attempt;
    this.#deps = deps;
    this.#assignment = assignment;
    this.#runToken = runToken;
    this.#log = deps.log.child({ executionId: String(executionId), attempt, runUid });
    this.#lease = new LeaseClock(deps.clock, () => deps.timings().outboundGateCloseMs, acceptSent);
    const hostKeys = repositories.flatMap(({ authorizationHeader }) => secretsOf(authorizationHeader));
    this.#masker = new Masker([
      ...Object.values(secrets),
      ...hostKeys,
      providerCredentials?.apiKey ?? "",
      ...literalSecrets(mcpServers),
    ]);
    this.#masker.addToken(runToken);
    this.#spool = new EventSpool(deps.directory.spoolFile(this));
    this.#events = new EventStream({
      ...deps,
      lease: { executionId, attempt },
      spool: this.#spool,
      masker: this.#masker,
      onBroken: (error) => this.#onBroken(error),
    });
    this.#live = new LiveText({
      timers: deps.timers,
      masker: () => this.#masker.stream(),
      send: textDeltaSender({ ...deps, lease: this, gate: this.#lease, signal: this.#lost.signal }),
    });
    this.#sandboxes = new Sandboxes(deps.directory.processes, this.#log);
    this.#savingSandboxes = new Sandboxes(deps.directory.processes, this.#log);
    this.#escalation = new TerminationEscalation(deps.timers, () => deps.timings().escalationStepMs, this.#sandboxes);
    this.#directives = new DirectiveQueue({
      onCancel: (reason) => this.cancel(new ExecutionCancelled("cancelled", reason || "The run was cancelled.")),
      onError: (error) => this.#log.warn({ operation: "directive", error }, "directive handler failed"),
    });
    this.#reporter = new OutcomeReporter({
      ...deps,
      lease: { executionId, attempt },
      events: this.#events,
      masker: this.#masker,
      log: this.#log,
      hasUnreportedAcks: () => this.ackedDirectiveSeq > this.#reportedSeq,
      lost: this.#lost.signal,
    });
    for (const directive of assignment.directives) this.#directives.deliver(directive);
  }

  /** Whether the platform has recorded its outcome. */
  get isReported(): boolean {
    return this.#isReported;
  }

  get phase(): string {
    return this.#stop.signal.aborted ? "STOPPING" : this.#phase;
  }

  get ackedDirectiveSeq(): bigint {
    return this.#directives.ackedSeq;
  }

  renewed(sent: Moment, runToken: string, ackedDirectiveSeq: bigint): void {
    if (runToken !== "") {
      this.#runToken = runToken;
      this.#masker.addToken(runToken);
    }
    this.#reportedSeq = ackedDirectiveSeq;
    this.#lease.renewed(sent);
  }

  /** Delivers a directive. Returns false if it was rejected because an earlier one is missing. */
  deliver(directive: worker.Directive): boolean {
    return this.#directives.deliver(directive);
  }

  stop(): void {
    this.cancel(new ExecutionCancelled("cancelled", "The run was cancelled."));
  }

  /** Starts the termination escalation. The last events and the outcome are still reported. */
  cancel(reason: ExecutionCancelled): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(reason);
    this.#escalation.escalate();
  }

  /** Ends an open debug window; no window opens afterwards. */
  endDebugWindow(why: string): void {
    this.#leave.abort(new Error(why));
  }

  /** Ends the execution immediately; nothing more of it is reported. */
  lose(why = "The platform declared this attempt lost."): void {
    if (this.#lost.signal.aborted) return;
    const reason = new LeaseLost(why);
    this.#log.warn({ operation: "lease", reason: reason.reason }, "lease lost");
    this.#lost.abort(reason);
    this.#stop.abort(reason);
    this.#events.end(reason);
    this.#escalation.killNow();
  }

  /**
   * Ends the attempt if the gate has been closed too long. Without a sandbox, the agent cannot be contained while the
   * gate is closed, so the attempt ends immediately. With a sandbox, its work survives a short outage.
   */
  checkGate(): void {
    if (this.#lease.isOpen()) return;
    if (this.#deps.sandbox.kind === "none" || this.#lease.closedForMs() > this.#deps.timings().closedKillMs)
      this.lose("The lease was not renewed for too long.");
  }

  /**
   * Runs the execution to its end. Resolves when its slot is free: every sandbox has ended and its directory is
   * removed. Never rejects.
   */
  run(): Promise<void> {
    return traceExecution(this.#assignment, this.#deps.tracer, (span) => this.#run(span));
  }

  async #run(span: Span): Promise<void> {
    const cancelLimit = this.#limitTime();
    const settled = await Promise.race([this.#settle(), this.#escalation.exhausted.then((): Settled => "abandoned")]);
    cancelLimit();
    await Promise.all([this.#sandboxes.ended(), this.#savingSandboxes.ended()]);
    this.#escalation.cancel();
    const stopReason = this.#stopReason();
    if (!stopReason && settled !== "abandoned" && "error" in settled && !isLeaseLost(settled.error))
      this.#log.error({ operation: "execution", error: settled.error }, "execution failed");
    const result = outcomeOf(settled, stopReason);
    const returned = result ? undefined : returnOf(settled, stopReason);
    span.set({ "millwright.outcome": result?.outcome ?? "LEFT" });
    if (result?.error) span.fail(result.error.code);
    if (result) await this.#complete(result);
    else if (returned) await this.#return(returned);
    else
      this.#log.info({ operation: "execution", outcome: "LEFT" }, "execution abandoned; its next attempt continues it");
    this.#live.end();
    this.#events.end(new LeaseLost("The execution has ended."));
    await bestEffort("remove the event spool", this.#log, () => this.#spool.remove());
    await bestEffort("remove the execution's directory", this.#log, () =>
      removeTree(this.#deps.directory.executionDir(this)),
    );
  }

  #stopReason(): Error | undefined {
    return this.#stop.signal.aborted ? (this.#stop.signal.reason as Error) : undefined;
  }

  #maySaveWorkspace(): boolean {
    const stopReason = this.#stopReason();
    return stopReason !== undefined && savesWorkspace(stopReason) && !this.#lost.signal.aborted;
  }

  async #settle(): Promise<Settled> {
    try {
      const dir = this.#deps.directory.executionDir(this);
      mkdirSync(dir, { mode: 0o700 });
      return { result: await this.#deps.runExecution(this.#context(dir)) };
    } catch (error) {
      return { error };
    }
  }

  /**
   * Retains the workspace of a run that may continue, for the run's idle time. Returns that time in milliseconds, or 0
   * if the workspace is not retained.
   */
  async #park({ outcome }: ExecutionResult): Promise<number> {
    const { runUid, idleTimeoutSeconds } = this.#assignment;
    const forMs = idleTimeoutSeconds * 1_000;
    if (!this.#saved || !PARKING.has(outcome) || this.#stop.signal.aborted) return 0;
    return (await this.#deps.parked.put(
      runUid,
      join(this.#deps.directory.executionDir(this), "workspace"),
      this.#saved,
      forMs,
    ))
      ? forMs
      : 0;
  }

  async #complete(result: ExecutionResult): Promise<void> {
    const parkedMs = await this.#park(result);
    this.#isReported = await this.#reporter.complete(result, { runUid: this.#assignment.runUid, parkedMs });
    // so that the response to a concurrent heartbeat has no effect
    if (this.#isReported) this.#lost.abort(new LeaseLost("The execution has ended."));
  }

  async #return(leaseReturn: LeaseReturn): Promise<void> {
    if (await this.#reporter.returnLease(leaseReturn, this.#stop.signal))
      this.#lost.abort(new LeaseLost("The lease was returned."));
  }

  async #openDebugWindow(result: ExecutionResult): Promise<AbortSignal | undefined> {
    if (this.#assignment.debugWindowMs <= 0 || this.#leave.signal.aborted) return undefined;
    await this.#reporter.openDebugWindow(result, this.#stop.signal);
    return this.#leave.signal;
  }

  #onBroken(error: DomainError): void {
    if (error instanceof LeaseLost) return this.lose();
    this.#stop.abort(error);
    this.#escalation.escalate();
  }

  #limitTime(): () => void {
    const { maxExecutionSeconds } = this.#assignment;
    if (maxExecutionSeconds <= 0) return () => {};
    return this.#deps.timers.after(maxExecutionSeconds * 1_000, () =>
      this.cancel(new ExecutionCancelled("timeout", `The execution took longer than ${maxExecutionSeconds} s.`)),
    );
  }

  #context(dir: string): ExecutionContext {
    return createContext(this.#deps, {
      assignment: this.#assignment,
      dir,
      lease: this.#lease,
      masker: this.#masker,
      events: this.#events,
      directives: this.#directives,
      live: this.#live,
      sandboxes: this.#sandboxes,
      signal: this.#stop.signal,
      lastSave: {
        isPermitted: () => this.#maySaveWorkspace(),
        signal: AbortSignal.any([this.#escalation.saveTimeout, this.#lost.signal]),
        sandboxes: this.#savingSandboxes,
      },
      log: this.#log,
      runToken: () => this.#runToken,
      onPhase: (phase) => {
        this.#phase = phase;
        if (phase === "RUNNING") this.#deps.startFailures.reset(); // the agent's sandbox has started
      },
      onSaved: (workspace) => (this.#saved = workspace),
      retain: (result) => this.#openDebugWindow(result),
    });
  }
}

/**
 * Returns whether an error means that the platform has reported the loss of the lease before a heartbeat did. This is
 * not a failure of the worker.
 */
const isLeaseLost = (error: unknown): boolean => isDomainError(error) && error.reason === "lease_lost";
