/* oxlint-disable jest/no-standalone-expect -- needs() declares tests */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually, ModelServer, needs, TraceCollector, type CollectedSpan } from "@millwright/testing";
import { Cluster, OWNER_KEY, Platform } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { RUN_TIMEOUT_MS, script, spawn, succeeded } from "./support/runs.ts";
import { aFactory, teamOf } from "./support/resources.ts";

const PROVIDER_KEY = "canary-key-of-the-provider";
const SECRET = "canary-of-a-secret";
const files = (model: string) => [
  {
    path: "factory.yaml",
    content: `schemaVersion: v1alpha1\nname: Works\nrepositories: []\nsecrets: [OTHER]\nagentDefaults:\n  model: ${model}\n`,
  },
  {
    path: "agents/foreman/agent.md",
    content: "---\ndescription: Works.\nagentType: FOREMAN\n---\n\nA canary-instruction.\n",
  },
  {
    path: "agents/helper/agent.md",
    content: "---\ndescription: Helps.\nagentType: IMPLEMENT\n---\n\nA canary-instruction.\n",
  },
];

type AnyPlatform = Pick<Platform, "url" | "output" | "path" | "remove">;
type DeploymentSetup = {
  readonly start: (env: Record<string, string>) => Promise<AnyPlatform>;
  /** Processes of the platform besides the worker. */
  readonly processes: "one" | "one each";
  /** Directories of the log files. */
  readonly logs: readonly string[];
};

/** The worker is a separate process in both. */
const DEPLOYMENTS: Readonly<Record<string, DeploymentSetup>> = {
  "a platform in one process": {
    start: (env) => Platform.start({ env }),
    processes: "one",
    logs: ["data/logs", "data/workers"],
  },
  "a platform of separate processes": {
    start: (env) => Cluster.start({ replicas: 1, workers: 1, env }),
    processes: "one each",
    logs: ["logs"],
  },
};

describe.each(Object.entries(DEPLOYMENTS))(
  "in %s, a trace that the client started",
  (_name, { start, processes, logs }) => {
    let models: ModelServer;
    let collector: TraceCollector;
    let platform: AnyPlatform;
    let api: Client;

    beforeAll(async () => {
      models = await ModelServer.start([
        {
          text: "canary-answer",
          calls: [{ name: "write_file", input: { path: "canary-path.txt", content: "canary-content" } }],
          usage: { input: 1_000, output: 200, cacheRead: 50 },
        },
        { text: "It is done.", usage: { input: 11, output: 7 } },
      ]);
      collector = await TraceCollector.start();
      platform = await start({
        ...collector.environment,
        ANTHROPIC_API_KEY: PROVIDER_KEY,
        ANTHROPIC_BASE_URL: models.url,
      });
      api = await connect(platform);
      await api.put(`/team/${await teamOf(api)}/secrets/OTHER`, { value: SECRET });
    });
    afterAll(async () => {
      await platform?.remove();
      await collector?.stop();
      await models?.stop();
    });

    /** Returns all spans of a trace once `isWhole` returns true and every span has its parent. */
    const spansOf = (
      traceId: string,
      isWhole: (spans: readonly CollectedSpan[]) => boolean,
    ): Promise<readonly CollectedSpan[]> =>
      eventually(
        () => {
          const spans = collector.spans.filter((span) => span.traceId === traceId);
          const known = new Set([CLIENT_SPAN, ...spans.map(({ spanId }) => spanId)]);
          const orphans = spans.filter(({ parentSpanId }) => !known.has(parentSpanId));
          if (isWhole(spans) && orphans.length === 0) return spans;
          throw new Error(
            `The trace is not whole; without a parent: ${orphans.map(({ name }) => name).join()}; of: ${spans.map(({ name }) => name).join()}`,
          );
        },
        { timeoutMs: RUN_TIMEOUT_MS },
      );

    test("connects the request, every service, the worker and a child run", async () => {
      const traceId = "a".repeat(32);
      const factory = await aFactory(api, files("scripted"));
      const prompt = script("say: canary-word", spawn(script("say: canary-word"), "helper"), "wait: all");
      const { run_id: runId } = await api.post(
        `/factory/${factory}/runs`,
        { prompt },
        { headers: { traceparent: `00-${traceId}-${CLIENT_SPAN}-01`, "x-request-id": "traced-1" } },
      );
      await succeeded(api, runId);

      const isEndOfRoot = ({ name, attributes }: CollectedSpan) =>
        name === "invoke_agent" &&
        attributes["millwright.run.uid"] === runId &&
        attributes["millwright.outcome"] === "DONE";
      const countConsumed = (spans: readonly CollectedSpan[], by: string, what: string) =>
        spans.filter(({ name, service }) => name === `process millwright.run.${what}.v1` && service === by).length;
      const spans = await spansOf(
        traceId,
        (all) =>
          all.some(isEndOfRoot) &&
          countConsumed(all, "gateway", "finished") === 2 &&
          countConsumed(all, "factories", "created") === 2,
      );

      const child = spans.find(
        ({ name, attributes }) => name === "invoke_agent" && attributes["millwright.run.uid"] !== runId,
      )!;
      expect(ancestorsOf(spans, child)).toEqual([
        "worker invoke_agent",
        "orchestrator millwright.orchestrator.v1.RunService/CreateRuns",
        "gateway millwright.orchestrator.v1.RunService/CreateRuns",
        "gateway POST /api/v1/agent/runs",
        "worker POST",
        "worker execute_tool spawn_run",
        "worker step",
        "worker invoke_agent",
        "orchestrator millwright.orchestrator.v1.RunService/CreateRuns",
        "factories millwright.orchestrator.v1.RunService/CreateRuns",
        "factories millwright.factories.v1.FactoryService/DispatchRun",
        "gateway millwright.factories.v1.FactoryService/DispatchRun",
        "gateway POST /api/v1/factory/{uid}/runs",
      ]);
      const created = spans.find(
        ({ name, service, parentSpanId }) =>
          name === "process millwright.run.created.v1" &&
          service === "factories" &&
          parentSpanId !== child.parentSpanId,
      )!;
      expect(created.links).toEqual([{ traceId, spanId: created.parentSpanId }]);
      expect(ancestorsOf(spans, created)[1]).toBe("orchestrator millwright.orchestrator.v1.RunService/CreateRuns");
      const [services, instances] = [
        new Set(spans.map(({ service }) => service)),
        new Set(spans.map(({ instance }) => instance)),
      ];
      expect([...services]).toEqual(expect.arrayContaining(SERVICES));
      // Other services may have consumed events of the run.
      expect(instances.size).toBe(processes === "one" ? 2 : services.size);
      expect(spans.find(({ parentSpanId }) => parentSpanId === CLIENT_SPAN)).toMatchObject({
        kind: 2,
        attributes: { "millwright.request.id": "traced-1", "http.response.status_code": 201 },
      });
      expect(spans.filter(({ isError }) => isError)).toEqual([]);
      expect(everythingSent(collector)).not.toMatch(SECRETS);

      // The log records of every process have the same ids.
      await eventually(() => {
        const lines = linesOf(platform, logs).filter((line) => line["traceId"] === traceId);
        expect(lines.map((line) => line["service"])).toEqual(expect.arrayContaining(SERVICES));
        expect(lines).toEqual(
          expect.arrayContaining([
            expect.objectContaining({
              message: "request finished",
              service: "gateway",
              requestId: "traced-1",
              spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
              operation: "POST /api/v1/factory/{uid}/runs",
            }),
            expect.objectContaining({
              message: "rpc finished",
              service: "orchestrator",
              requestId: "traced-1",
              operation: "millwright.orchestrator.v1.RunService/CreateRuns",
            }),
            expect.objectContaining({
              message: "execution completed",
              service: "worker",
              runUid: runId,
              executionId: expect.any(String),
              attempt: 1,
              spanId: expect.any(String),
            }),
          ]),
        );
      });
    });

    needs("bwrap", "reaches the call of a model, with its token counts and without its text", async () => {
      const traceId = "b".repeat(32);
      const factory = await aFactory(api, files("claude-opus-5-5"));
      const headers = { traceparent: `00-${traceId}-${CLIENT_SPAN}-01` };
      const { run_id: runId } = await api.post(`/factory/${factory}/runs`, { prompt: "A canary-prompt." }, { headers });
      await succeeded(api, runId);

      const isCall = ({ name }: CollectedSpan) => name.startsWith("chat ");
      const spans = await spansOf(
        traceId,
        (all) => all.filter(isCall).length === 2 && all.some(({ name }) => name === "invoke_agent"),
      );
      const calls = spans
        .filter(isCall)
        .toSorted(
          (a, b) =>
            Number(b.attributes["gen_ai.usage.input_tokens"]) - Number(a.attributes["gen_ai.usage.input_tokens"]),
        );
      expect(calls).toMatchObject([
        {
          name: "chat claude-opus-5-5",
          kind: 3,
          service: "worker",
          isError: false,
          attributes: {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": "claude-opus-5-5",
            "gen_ai.response.finish_reasons": ["tool_calls"],
            "gen_ai.usage.input_tokens": 1_050,
            "gen_ai.usage.cache_read.input_tokens": 50,
            "gen_ai.usage.output_tokens": 200,
          },
        },
        {
          attributes: {
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.usage.input_tokens": 11,
            "gen_ai.usage.output_tokens": 7,
          },
        },
      ]);
      const way = ancestorsOf(spans, calls[0]!);
      expect([...way.slice(0, 4), way.at(-1)]).toEqual([
        "worker chat claude-opus-5-5",
        "worker step",
        "worker invoke_agent",
        "orchestrator millwright.orchestrator.v1.RunService/CreateRuns",
        "gateway POST /api/v1/factory/{uid}/runs",
      ]);
      expect(spans.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["set_up", "execute_tool write_file", "millwright.worker.v1.WorkerService/ReportUsage"]),
      );
      expect(models.requests.map(({ key }) => key)).toEqual([PROVIDER_KEY, PROVIDER_KEY]);
      expect(everythingSent(collector)).not.toMatch(SECRETS);
    });
  },
);

/** The services that take part in a run; others may consume its events. */
const SERVICES = ["gateway", "factories", "orchestrator", "worker"];

/** The span of the test itself, the parent of the first request. */
const CLIENT_SPAN = "c".repeat(16);

/** Returns service and name of a span and of each ancestor up to the client's span. */
function ancestorsOf(spans: readonly CollectedSpan[], span: CollectedSpan): string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [`${span.service} ${span.name}`, ...(parent ? ancestorsOf(spans, parent) : [])];
}

/** Texts of people, agents and models, and credentials of every kind. */
const SECRETS = new RegExp(`canary-|${OWNER_KEY}|mwr_|mww_`);

const linesOf = (platform: AnyPlatform, logs: readonly string[]): Record<string, unknown>[] =>
  logs
    .flatMap((dir) =>
      readdirSync(platform.path(dir), { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => readFileSync(platform.path(dir, name), "utf8")),
    )
    .flatMap((text) =>
      text
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    );

const everythingSent = ({ bodies }: TraceCollector): string => bodies.map(({ bytes }) => bytes.toString()).join("\n");
