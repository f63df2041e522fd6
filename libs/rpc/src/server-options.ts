import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { LogFields, Metrics, SpanAttributes, Tracer } from "@millwright/telemetry";
import type { Verifier } from "./caller-token.ts";

/** Maximum message size: a run with five attachments of 10 MB, or a definition tree of 20 MiB. */
export const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

/** Registers the services of a server: `(router) => router.service(RunService, {…})`. */
export type Routes = (router: ConnectRouter) => void;

type LogLine = (fields: LogFields, message: string) => void;

/** Options of every server, in process or on the network. */
export type ServerOptions = {
  /** The name of the app in metrics. */
  readonly service: string;
  readonly verifier: Verifier;
  readonly log: { debug: LogLine; info: LogLine; warn: LogLine; error: LogLine };
  readonly metrics: Metrics;
  /** Records a span per call; absent: none. */
  readonly tracer?: Tracer;
  /**
   * Which services may call which method in their own name; see `allowServices`. A method without an entry permits
   * none.
   */
  readonly allow?: Readonly<Record<string, readonly string[]>>;
  /** Services (`typeName`) whose callers have no caller token: workers, which have their own keys. */
  readonly open?: readonly string[];
  /**
   * Polled methods, by `method.parent.typeName/name`: their successes are logged at debug level only, and they have no
   * spans.
   */
  readonly quiet?: readonly string[];
};

/** Returns the name of a method in tables and logs: `millwright.orchestrator.v1.RunService/CreateRun`. */
export function methodName(method: DescMethod): string {
  const known = methodNames.get(method);
  if (known !== undefined) return known;
  const name = `${method.parent.typeName}/${method.name}`;
  methodNames.set(method, name);
  return name;
}

const methodNames = new WeakMap<DescMethod, string>();

/** Returns the attributes of a method's spans (OpenTelemetry's semantic conventions for RPC). */
export const rpcAttributes = (method: DescMethod): SpanAttributes => ({
  "rpc.system.name": "connectrpc",
  "rpc.method": methodName(method),
});

/**
 * Returns entries of `ServerOptions.allow` for the methods of one service: `allowServices(RunService, { createRun:
 * ["factories"] })`.
 */
export const allowServices = <S extends DescService>(
  service: S,
  table: { readonly [M in keyof S["method"]]?: readonly string[] },
): Record<string, readonly string[]> =>
  Object.fromEntries(
    service.methods.flatMap((method) => {
      const services = table[method.localName];
      return services ? [[methodName(method), services]] : [];
    }),
  );
