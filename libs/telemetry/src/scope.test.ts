import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { memoryTracer } from "@millwright/testing";
import {
  createLogger,
  currentScope,
  inSpan,
  iterateInScope,
  openScope,
  outsideScopes,
  traced,
  type TraceContext,
} from "./index.ts";

const PARENT: TraceContext = { traceId: "t", spanId: "caller", isSampled: true };

describe("a scope", () => {
  test("follows asynchronous calls, and ends with them", async () => {
    const tracer = memoryTracer();
    await traced("request", { tracer, parent: PARENT, fields: { requestId: "r" } }, async () => {
      await turn();
      await inSpan("below", { kind: "client" }, async () => {
        const { context } = tracer.spans[1]!;
        expect(currentScope()).toMatchObject({
          trace: context,
          fields: { requestId: "r", traceId: "t", spanId: context.spanId },
        });
      });
      expect(currentScope()?.trace).toEqual(tracer.spans[0]!.context);
    });
    expect(currentScope()).toBeUndefined();
    expect(tracer.spans).toMatchObject([
      { name: "request", parent: PARENT, isEnded: true },
      { name: "below", kind: "client", parent: tracer.spans[0]!.context, isEnded: true },
    ]);
  });

  test("records reason, code or class of a failure, and nothing of its text", async () => {
    const tracer = memoryTracer();
    const failWith = async (thrown: unknown) => {
      const failing = async () => {
        throw thrown;
      };
      await traced("request", { tracer, parent: PARENT }, failing).catch(() => {});
    };
    await failWith(Object.assign(new Error("private"), { reason: "run_pending" }));
    await failWith(Object.assign(new Error("private"), { code: "ECONNREFUSED" }));
    await failWith(Object.assign(new TypeError("private"), { code: "not a code: private" }));
    await failWith("private");
    expect(tracer.spans.map(({ error }) => error)).toEqual(["run_pending", "ECONNREFUSED", "TypeError", "unknown"]);
  });

  test("without a tracer passes the trace on, or starts an unrecorded one", async () => {
    const passed = openScope("request", { tracer: undefined, parent: PARENT }).scope;
    const begun = openScope("request", { tracer: undefined, parent: undefined }).scope;
    expect([passed.trace, begun.trace.isSampled]).toEqual([PARENT, false]);
    expect(passed.fields).toEqual({ traceId: "t" });
    await traced("request", { tracer: undefined, parent: PARENT }, () =>
      inSpan("below", {}, async () => expect(currentScope()?.trace).toEqual(PARENT)),
    );
  });

  test("can be left by work that is shared by all requests", async () => {
    await traced("request", { tracer: undefined, parent: PARENT }, async () => {
      expect(await outsideScopes(async () => (await turn(), currentScope()))).toBeUndefined();
      expect(currentScope()?.trace).toEqual(PARENT);
    });
  });

  test("applies to every step of a stream, for any reader, and to its end", async () => {
    const seen: (string | undefined)[] = [];
    async function* numbers() {
      try {
        for (let n = 1; ; n += 1) {
          seen.push(currentScope()?.trace.spanId);
          yield n;
        }
      } finally {
        seen.push(currentScope()?.trace.spanId);
      }
    }
    const { scope } = openScope("request", { tracer: undefined, parent: PARENT });
    for await (const n of iterateInScope(scope, numbers())) if (n === 2) break;
    expect(seen).toEqual(["caller", "caller", "caller"]);
  });
});

test("a log line has the fields of its scope; its own and the logger's fields take precedence, without duplicates", () => {
  const lines: string[] = [];
  const log = createLogger({ service: "worker", destination: { write: (text: string) => void lines.push(text) } });
  const tracer = memoryTracer();
  return traced(
    "request",
    { tracer, parent: PARENT, fields: { requestId: "r", runUid: "run-1", executionId: "7" } },
    async () => {
      const { spanId } = tracer.spans[0]!.context;
      log.info("plain");
      log.child({ runUid: "run-2" }).warn({ executionId: "8" }, "own");
      const [plain, own] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(plain).toMatchObject({
        requestId: "r",
        traceId: "t",
        spanId,
        runUid: "run-1",
        executionId: "7",
        message: "plain",
      });
      expect(own).toMatchObject({
        requestId: "r",
        traceId: "t",
        spanId,
        runUid: "run-2",
        executionId: "8",
        message: "own",
      });
      expect(lines[1]!.match(/"runUid"/g)).toHaveLength(1);
    },
  );
});
