import { TRUSTED_IN_PROCESS, type LocalTransport } from "@millwright/rpc";

/** A transport whose target is set later, because the services of one process call each other in cycles. */
export type DeferredTransport = LocalTransport & { setTarget(transport: LocalTransport): void };

export function deferredTransport(): DeferredTransport {
  let target: LocalTransport | undefined;
  const ready = (): LocalTransport => {
    if (!target) throw new Error("A service was called before it was composed.");
    return target;
  };
  return {
    [TRUSTED_IN_PROCESS]: true,
    setTarget: (transport) => void (target = transport),
    unary: (...call) => ready().unary(...call),
    stream: (...call) => ready().stream(...call),
  };
}
