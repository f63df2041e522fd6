import type { ExecutionContext } from "../context/execution-context.ts";
import type { PlannedCall } from "../context/platform-client.ts";
import { systemTimers, type Timers } from "../time/timers.ts";
import type { ModelProvider } from "./model-provider.ts";
import { scriptedProvider } from "./scripted/scripted-provider.ts";
import { wireNamed } from "./wires/language-model.ts";
import { WIRE_LIMITS, type WireLimits } from "./wires/retried-calls.ts";
import { wireProvider, type WireDeps } from "./wires/wire-provider.ts";

type CallPolicy = { readonly limits: WireLimits; readonly timers: Timers };

/** Returns the provider of an execution's model, or undefined if this worker does not support it. */
export function providerFor(
  ctx: ExecutionContext,
  emit: WireDeps["emit"],
  policy: CallPolicy = { limits: WIRE_LIMITS, timers: systemTimers },
): ModelProvider | undefined {
  const { assignment } = ctx;
  if (assignment.provider === "" || assignment.provider === scriptedProvider.name) return scriptedProvider;
  const wire = wireNamed(assignment.provider);
  return (
    wire &&
    wireProvider({
      ...{ wire, assignment, emit, ...policy, fetch: ctx.outbound.fetch },
      mask: (text) => ctx.mask(text),
      whenOpen: () => ctx.gate.whenOpen(),
      reportUsage: (usage) => ctx.platform.reportUsage(usage),
      get reserveCost() {
        return ctx.platform.isCostLimited() ? (call: PlannedCall) => ctx.platform.reserveCost(call) : undefined;
      },
      publishTextDelta: (stepId, delta) => ctx.publishTextDelta(stepId, delta),
      called: (outcome) => ctx.modelCalled(assignment.provider, outcome),
    })
  );
}
