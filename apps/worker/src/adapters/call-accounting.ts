import type { JsonObject } from "@bufbuild/protobuf";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { PlannedCall } from "../context/platform-client.ts";
import type { TokenBudget } from "../conversation/token-budget.ts";
import type { RunFailure } from "../model/model-provider.ts";
import { tokensIn } from "../model/wires/compaction.ts";
import { LIMITED_OUTPUT_TOKENS, reservePlanned } from "../model/wires/cost-reservation.ts";
import { interruptedUsage } from "../model/wires/token-counts.ts";
import { systemTimers } from "../time/timers.ts";
import type { GatewayWire, WireCall } from "./gateway-wires.ts";
import type { RelayedResponse } from "./relayed-response.ts";
import { StepCount } from "./step-count.ts";

export type AccountingDeps = { readonly ctx: ExecutionContext; readonly budget: TokenBudget };

/** Applies a run's limits of steps, tokens and cost to the model calls of a harness, and reports their usage. */
export class CallAccounting {
  readonly #deps: AccountingDeps;
  readonly #steps: StepCount;
  #calls = 0;
  /** The newest call under a cost limit; it settles after all earlier ones. */
  #limitedCalls: Promise<unknown> = Promise.resolve();

  constructor(deps: AccountingDeps) {
    this.#deps = deps;
    this.#steps = new StepCount(deps.ctx.assignment.stepLimit);
  }

  /** Returns the exceeded limit of tokens or steps that prevents a call; undefined if it may be made. */
  exceeded({ kind }: WireCall): RunFailure | undefined {
    return this.#deps.budget.exceeded() ?? (kind === "count" ? undefined : this.#steps.exceeded(kind === "step"));
  }

  /** Counts an answered call. */
  add({ kind }: WireCall): void {
    if (kind !== "count") this.#steps.add(kind === "step");
  }

  /**
   * Makes the call. An execution has only one reservation, so under a cost limit calls are sequential: each starts
   * after the previous one was reported.
   */
  sequenced(call: WireCall, make: () => Promise<void>): Promise<void> {
    if (call.kind === "count" || !this.#deps.ctx.platform.isCostLimited()) return make();
    const pendingCall = this.#limitedCalls.then(make);
    this.#limitedCalls = pendingCall.catch(() => undefined);
    return pendingCall;
  }

  /** Returns a new call id. It is unique across the attempts of the run. */
  nextCallId(): string {
    const { executionId, attempt } = this.#deps.ctx.assignment;
    return `e${executionId}-a${attempt}-h${(this.#calls += 1)}`;
  }

  /**
   * Reports the usage of a response. A response that was cut off is charged, too. One that the provider did not count
   * is reported without counts, so that it is known to be missing in sums and counts against limits.
   */
  async report(
    callId: string,
    { modelId }: WireCall,
    { counted, characters, isComplete }: RelayedResponse,
    sent: JsonObject,
  ): Promise<void> {
    const { ctx, budget } = this.#deps;
    const used = isComplete ? { usage: counted } : interruptedUsage(counted, sent, characters);
    budget.spend(used.usage);
    await ctx.platform.reportUsage({ callId, modelId: modelId || ctx.assignment.modelId, ...used });
  }

  /**
   * Reserves the maximum cost of a call under a cost limit. Returns the request with a matching limit of its response,
   * and the reason if the run must end.
   */
  async reserve(
    requestBody: JsonObject,
    wire: GatewayWire,
    { kind, modelId }: WireCall,
    abandoned: AbortSignal,
  ): Promise<[JsonObject, RunFailure | undefined]> {
    const { assignment, platform, signal } = this.#deps.ctx;
    if (!platform.isCostLimited() || kind === "count") return [requestBody, undefined];
    const wanted = wire.outputLimit(requestBody);
    const most = Math.min(typeof wanted === "number" ? wanted : LIMITED_OUTPUT_TOKENS, LIMITED_OUTPUT_TOKENS);
    const planned = { modelId: modelId || assignment.modelId, inputTokens: tokensIn(requestBody), outputTokens: most };
    const reservation = { reserveCost: (call: PlannedCall) => platform.reserveCost(call), timers: systemTimers };
    return [
      wire.limited(requestBody, most),
      await reservePlanned(planned, reservation, AbortSignal.any([signal, abandoned])),
    ];
  }
}
