import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export type CollectedSpan = {
  readonly traceId: string;
  readonly spanId: string;
  /** "" for the first span of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  /** In OTLP's numbering: 1 internal, 2 server, 3 client, 5 consumer. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly isError: boolean;
  /** `service.name`, and the process (`service.instance.id`). */
  readonly service: string;
  readonly instance: string;
};

type Value = {
  stringValue?: string;
  intValue?: number | string;
  doubleValue?: number;
  boolValue?: boolean;
  arrayValue?: { values: Value[] };
};
type Attribute = { key: string; value: Value };
type Posted = {
  resourceSpans?: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: {
        traceId: string;
        spanId: string;
        parentSpanId?: string;
        name: string;
        kind: number;
        attributes?: Attribute[];
        links?: { traceId: string; spanId: string }[];
        status?: { code?: number };
      }[];
    }[];
  }[];
};

/**
 * An OpenTelemetry collector on this machine: receives OTLP over HTTP, parses its JSON form, and stores all bodies
 * unchanged.
 */
export class TraceCollector {
  readonly spans: CollectedSpan[] = [];
  /** Bodies as they were sent, in either form. */
  readonly bodies: { readonly path: string; readonly type: string; readonly bytes: Buffer }[] = [];
  /** Sent instead of 200, while set. */
  refusal: number | undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const type = request.headers["content-type"] ?? "";
        const bytes = Buffer.concat(chunks);
        this.bodies.push({ path: request.url ?? "", type, bytes });
        if (this.refusal === undefined && type.startsWith("application/json"))
          this.spans.push(...spansOf(JSON.parse(bytes.toString()) as Posted));
        response
          .writeHead(this.refusal ?? 200, { "content-type": type })
          .end(type.startsWith("application/json") ? "{}" : "");
      });
    });
  }

  static async start(): Promise<TraceCollector> {
    const collector = new TraceCollector();
    await new Promise<void>((resolve) => collector.#server.listen(0, "127.0.0.1", resolve));
    return collector;
  }

  /** Returns the environment for a process that sends its spans here without delay. */
  get environment(): Record<string, string> {
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "100",
    };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const spansOf = ({ resourceSpans = [] }: Posted): CollectedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const { "service.name": service, "service.instance.id": instance } = attributesOf(resource.attributes);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ traceId, spanId, parentSpanId = "", name, kind, attributes = [], links = [], status }) => ({
        ...{ traceId, spanId, parentSpanId, name, kind, attributes: attributesOf(attributes) },
        ...{
          links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
          isError: status?.code === 2,
          service: String(service),
          instance: String(instance),
        },
      })),
    );
  });

const attributesOf = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));

const valueOf = (value: Value): unknown =>
  value.stringValue ??
  value.boolValue ??
  value.doubleValue ??
  (value.intValue === undefined ? value.arrayValue?.values.map(valueOf) : Number(value.intValue));
