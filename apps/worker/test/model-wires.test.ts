import { afterEach, describe, expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import { outboundRule } from "@millwright/outbound";
import { ModelServer, type ModelAnswer, type ModelRequest, type WireName } from "@millwright/testing";
import type { ConversationEvent, ModelStep, ModelContext } from "../src/model/model-provider.ts";
import { providerFor } from "../src/model/providers.ts";
import { systemTimers, type Timers } from "../src/time/timers.ts";
import { aContext } from "./support/a-context.ts";

const KEY = "canary-provider-key";
const LIMITS = { silenceMs: 60_000, triesMax: 3, retryFirstMs: 1, retryMaxMs: 5 };
const WIRES: readonly (readonly [WireName, string])[] = [
  ["anthropic", ""],
  ["openai", "/v1"],
  ["openai-compatible", "/v1"],
  ["google", "/v1beta"],
];
const TOOLS = [
  {
    name: "shell",
    description: "Runs a command.",
    inputSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  },
];

let server: ModelServer;
afterEach(() => server.stop());

const message = (text: string): ConversationEvent => ({
  kind: "message",
  payload: { role: "user", text, message_uid: "m", kind: "prompt" },
});

/** Connects a provider to the server. Returns a function that takes its next step after given events. */
async function connect(
  wire: readonly [WireName, string],
  answers: readonly ModelAnswer[] | ((request: ModelRequest, index: number) => ModelAnswer),
  secrets: Record<string, string> = {},
  contextTokens?: number,
  modelName = "a-model",
) {
  const answerOf = (request: ModelRequest, index: number) =>
    typeof answers === "function" ? answers(request, index) : answers[Math.min(index, answers.length - 1)]!;
  server = await ModelServer.start((request, index) => {
    const answer = answerOf(request, index);
    if (answer === "hang") setImmediate(() => onSilence());
    return answer;
  });
  const [provider, path] = wire;
  const context = aContext({
    dir: "",
    assignment: {
      executionId: 7n,
      attempt: 2,
      provider,
      modelId: `${provider}/${modelName}`,
      secrets,
      providerCredentials: { provider, apiKey: KEY, baseUrl: server.url + path },
    },
  });
  const warnings: string[] = [];
  let onSilence = () => {}; // the silence timer fires only when a test calls it
  const timers: Timers = {
    after: (ms, run) => (ms === LIMITS.silenceMs ? ((onSilence = run), () => {}) : systemTimers.after(ms, run)),
  };
  const model = providerFor(context.ctx, (_kind, payload) => warnings.push(payload["text"] as string), {
    limits: { ...LIMITS, contextTokens },
    timers,
  })!;
  const step = (
    events: readonly ConversationEvent[] = [message("Hello.")],
    signal = new AbortController().signal,
    more: Partial<ModelContext> = {},
  ) => {
    const asked: ModelContext = {
      ...more,
      basePrompt: "Be kind.",
      agentPrompt: "You fix.\n```scripted\n- say: no\n```",
      modelId: `${provider}/a-model`,
      events,
      earlier: [],
      tools: TOOLS,
      mode: "normal",
      directory: "/workspace",
      notices: [],
      rules: [{ path: "shop/AGENTS.md", text: "Use tabs." }],
      skills: [{ name: "review", description: "Reviews." }],
    };
    return model.step(asked, signal) as Promise<ModelStep | undefined>;
  };
  return { step, server, warnings, usage: context.usage, modelCalls: context.modelCalls, requests: server.requests };
}

describe.each(WIRES)("the %s wire", (...wire) => {
  test("gives text and parallel tool calls, with unique ids and the tokens that the provider counted", async () => {
    const { step, requests } = await connect(wire, [
      {
        text: "I look.",
        calls: [
          { name: "shell", input: { command: "ls" } },
          { name: "shell", input: { command: "pwd" } },
        ],
        usage: { input: 1_234, output: 56, cacheRead: 789 },
      },
    ]);
    expect(await step()).toEqual({
      ...{
        stepId: "e7-a2-c1",
        text: "I look.",
        usage: { inputTokens: 1_234, outputTokens: 56, inputCacheReadTokens: 789 },
        next: { kind: "continue" },
      },
      toolCalls: [
        { callId: "e7-a2-c1-0", name: "shell", input: { command: "ls" } },
        { callId: "e7-a2-c1-1", name: "shell", input: { command: "pwd" } },
      ],
    });
    expect(requests).toEqual([expect.objectContaining({ wire: wire[0], model: "a-model", key: KEY })]);
    const sent = JSON.stringify(requests[0]!.body);
    for (const part of ["Be kind.", "You fix.", "Use tabs.", "/workspace", "Hello.", "Runs a command."])
      expect(sent).toContain(part);
    expect(sent).not.toContain("say: no");
  });

  test("requests a tool call if text alone is not a result, if its provider supports that", async () => {
    const { step, requests } = await connect(wire, [
      { calls: [{ name: "shell", input: { command: "ls" } }], usage: { input: 1, output: 1 } },
    ]);
    await step();
    await step(undefined, undefined, { mustCallTool: true });
    const forced = /"tool_choice":("required"|\{"type":"any")|"mode":"ANY"/;
    expect(requests.map(({ body }) => forced.test(JSON.stringify(body)))).toEqual([
      false,
      wire[0] !== "openai-compatible",
    ]);
  });

  test("gets the results of its calls, and ends when there are none", async () => {
    const { step, requests } = await connect(wire, [
      {
        text: "First.",
        calls: [
          { name: "shell", input: { command: "ls" } },
          { name: "shell", input: { command: "pwd" } },
        ],
        usage: { input: 1, output: 1 },
      },
      { text: "Done.", usage: { input: 2, output: 2 } },
    ]);
    const first = (await step())!;
    const ends = first.toolCalls.map(({ callId }, index): ConversationEvent => ({
      kind: "tool_end",
      payload: { call_id: callId, state: "completed", output: { output: `result-${index}` } },
    }));
    const events = [message("Hello."), stepEvent(first), ...ends];
    expect(await step(events)).toMatchObject({
      stepId: "e7-a2-c2",
      text: "Done.",
      toolCalls: [],
      next: { kind: "done" },
    });
    const sent = JSON.stringify(requests[1]!.body);
    for (const part of ["First.", "result-0", "result-1"]) expect(sent).toContain(part);
    expect(sent.includes("signature-0")).toBe(wire[0] === "google"); // opaque parts are sent back to the provider
  });

  test("includes the history of earlier executions, with interrupted calls marked", async () => {
    const { step, requests } = await connect(wire, [{ text: "Done.", usage: { input: 1, output: 1 } }]);
    const calls = ["e1-a1-c1-0", "e1-a1-c1-1"].map((call_id) => ({
      call_id,
      name: "shell",
      input: { command: "make" },
    }));
    const events: ConversationEvent[] = [
      message("Hello."),
      { kind: "model_step", payload: { step_id: "e1-a1-c1", text: "", tool_calls: calls } },
      { kind: "tool_start", payload: { call_id: "e1-a1-c1-0" } },
      message("Continue."),
    ];
    await step(events);
    const sent = JSON.stringify(requests[0]!.body);
    for (const part of ["its effect is unknown", "It was not started.", "Continue."]) expect(sent).toContain(part);
  });

  test.each([
    ["429", { status: 429 }],
    ["500", { status: 500 }],
    ["529", { status: 529 }],
    ["a hang", "hang"],
    ["a stream that ends early", "cut"],
    ["a connection that breaks", "reset"],
  ] as const)("Model 429/5xx: is retried after %s", async (_what, fault) => {
    const { step, warnings, modelCalls, requests } = await connect(wire, [
      fault,
      { text: "At last.", usage: { input: 10, output: 2 } },
    ]);
    expect(await step()).toMatchObject({
      stepId: "e7-a2-c2",
      text: "At last.",
      usage: { inputTokens: 10, outputTokens: 2 },
    });
    expect([requests.length, warnings]).toEqual([
      2,
      [expect.stringMatching(/^The model did not respond \(.+\); the call is retried in \d+ s \(try 2 of 3\)\.$/)],
    ]);
    expect(modelCalls).toEqual([`${wire[0]} model_unavailable`, `${wire[0]} ok`]);
  });

  test("Model 429/5xx: gives up after its last try, as the platform's fault", async () => {
    const { step, usage, requests } = await connect(wire, [{ status: 503, message: `overloaded, ${KEY}` }]);
    const { next, ...rest } = (await step())!;
    expect(next).toMatchObject({
      kind: "failed",
      failure: {
        code: "resource_unavailable",
        retryable: true,
        reason: "model_unavailable",
        message: expect.stringContaining("503: overloaded, ***"),
      },
    });
    expect([requests.length, usage, rest.usage]).toEqual([3, [], undefined]);
  });

  test.each([
    [401, "external_authentication_required"],
    [404, "resource_not_found"],
    [400, "invalid_request"],
  ])("treats %i as final: %s; the key is in no text", async (status, code) => {
    const { step, warnings, requests } = await connect(wire, [{ status, message: `wrong key ${KEY}` }]);
    const { next } = (await step())!;
    expect(next).toMatchObject({ kind: "failed", failure: { code, retryable: false } });
    expect([requests.length, JSON.stringify([next, warnings])]).toEqual([1, expect.not.stringContaining(KEY)]);
  });

  test("ends at once on request", async () => {
    const stop = new AbortController();
    const { step, warnings } = await connect(wire, () => (stop.abort(new Error("stopped")), "hang"));
    await expect(step(undefined, stop.signal)).rejects.toThrow("stopped");
    expect(warnings).toEqual([]);
  });

  test("counts nothing if the provider counts nothing", async () => {
    const { step } = await connect(wire, [{ text: "Done." }]);
    expect((await step())!.usage).toEqual(wire[0] === "anthropic" ? { inputTokens: 0, outputTokens: 0 } : {});
  });

  test("gives the provider no secret of the run", async () => {
    const { step, requests } = await connect(wire, [{ text: "Done.", usage: { input: 1, output: 1 } }], {
      TOKEN: 'canary-"secret"',
    });
    await step([message('The token is canary-"secret".')]);
    expect(JSON.stringify(requests[0]!.body)).not.toContain("canary");
  });
});

test.each([
  ["google", "/v1beta", "cut", { inputTokens: 5, outputTokens: 0 }, false],
  ["google", "/v1beta", "reset", { inputTokens: 5, outputTokens: 4 }, true],
  ["anthropic", "", "cut", { inputTokens: 5, outputTokens: 4 }, true],
  ["anthropic", "", "reset", { inputTokens: 5, outputTokens: 4 }, true],
  ["openai", "/v1", "reset", { outputTokens: 4 }, true],
  ["openai-compatible", "/v1", "reset", { outputTokens: 4 }, true],
] as const)(
  "a response of %s%s that ends in a %s is reported under its own id, with estimates of what was not counted",
  async (wire, path, fault, usage, isEstimated) => {
    const { step, usage: reported } = await connect(
      [wire, path],
      [fault, { text: "Done.", usage: { input: 10, output: 2 } }],
    );
    expect((await step())!.stepId).toBe("e7-a2-c2");
    expect(reported).toEqual([
      {
        callId: "e7-a2-c1",
        modelId: `${wire}/a-model`,
        usage: expect.objectContaining(usage),
        isEstimated: isEstimated || undefined,
      },
    ]);
  },
);

test.each(WIRES.filter(([name]) => name !== "google"))(
  "a call of %s whose arguments are no JSON object is marked as malformed",
  async (...wire) => {
    const { step } = await connect(wire, [
      { calls: [{ name: "shell", input: '{"command": "ls' }], usage: { input: 1, output: 1 } },
    ]);
    expect((await step())!.toolCalls).toEqual([
      { callId: "e7-a2-c1-0", name: "shell", input: {}, malformed: '{"command": "ls' },
    ]);
  },
);

test("cache writes are counted, and the prompt is marked for the cache where a wire needs it", async () => {
  const { step, requests } = await connect(
    ["anthropic", ""],
    [{ text: "Done.", usage: { input: 10, output: 2, cacheRead: 3, cacheWrite: 4 } }],
  );
  expect((await step())!.usage).toEqual({
    inputTokens: 10,
    outputTokens: 2,
    inputCacheReadTokens: 3,
    inputCacheWriteTokens: 4,
  });
  expect(JSON.stringify(requests[0]!.body).match(/"cache_control":\{"type":"ephemeral"\}/g)).toHaveLength(2);
});

test.each([
  ["refused", "failed"],
  ["length", "done"],
] as const)("a response that ends by %s: %s", async (end, kind) => {
  const { step, warnings } = await connect(
    ["openai-compatible", "/v1"],
    [{ text: "Half", end, usage: { input: 1, output: 1 } }],
  );
  expect((await step())!.next.kind).toBe(kind);
  expect(warnings.length).toBe(end === "length" ? 1 : 0);
});

test("the provider's Retry-After is obeyed, within bounds", async () => {
  const { step, warnings } = await connect(
    ["openai", "/v1"],
    [
      { status: 429, retryAfter: 0.02 },
      { text: "Done.", usage: { input: 1, output: 1 } },
    ],
  );
  await step();
  expect(warnings).toHaveLength(1);
});

function stepEvent({
  stepId,
  text,
  toolCalls,
}: {
  stepId: string;
  text: string;
  toolCalls: readonly { callId: string; name: string; input: JsonObject }[];
}): ConversationEvent {
  return {
    kind: "model_step",
    payload: {
      step_id: stepId,
      text,
      tool_calls: toolCalls.map(({ callId, name, input }) => ({ call_id: callId, name, input })),
    },
  };
}

describe("a conversation that is too long for the model", () => {
  const LONG = "x".repeat(9_000);
  const userMessage = (uid: string, text: string): ConversationEvent => ({
    kind: "message",
    payload: { role: "user", text, message_uid: uid },
  });
  const did = (id: string): ConversationEvent => ({
    kind: "model_step",
    payload: { step_id: id, text: `${id} is done.`, tool_calls: [] },
  });
  const summarized = (summary: string, from: string): ConversationEvent => ({
    kind: "conversation_summarized",
    payload: { summary, retained_from: from },
  });
  const bodyOf = ({ body }: ModelRequest) => JSON.stringify(body);

  test.each(WIRES)(
    "is summarised with the %s protocol, and continues from the summary and its newest part",
    async (...wire) => {
      const { step, requests } = await connect(
        wire,
        [
          { text: "The task is T.", usage: { input: 50, output: 5 } },
          { text: "I continue.", usage: { input: 1, output: 1 } },
        ],
        {},
        3_000,
      );
      const events = [userMessage("m1", LONG), did("s1"), userMessage("m2", "Continue.")];
      expect(await step(events)).toEqual({
        kind: "summary",
        callId: "e7-a2-c1",
        text: "The task is T.",
        retainedFrom: "s1",
        usage: { inputTokens: 50, outputTokens: 5 },
      });
      expect(bodyOf(requests[0]!)).not.toContain("Continue.");
      expect(await step([...events, summarized("The task is T.", "s1")])).toMatchObject({
        stepId: "e7-a2-c2",
        text: "I continue.",
      });
      const body = bodyOf(requests[1]!);
      for (const part of ["The task is T.", "s1 is done.", "Continue."]) expect(body).toContain(part);
      expect(body).not.toContain("xxx");
    },
  );

  test("is summarised if the provider rejects its length, and fails if nothing can be removed", async () => {
    const tooLong: ModelAnswer = { status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum" };
    const { step } = await connect(
      ["anthropic", ""],
      [tooLong, { text: "Short.", usage: { input: 1, output: 1 } }, tooLong],
    );
    expect(await step([userMessage("m1", "Begin."), did("s1"), userMessage("m2", "Continue.")])).toMatchObject({
      kind: "summary",
      text: "Short.",
    });
    expect(await step([userMessage("m1", "Begin.")])).toMatchObject({
      next: { kind: "failed", failure: { code: "invalid_request" } },
    });
  });

  test("is summarised again, and more of it, when one summary was not enough", async () => {
    const { step } = await connect(["anthropic", ""], [{ text: "Again.", usage: { input: 1, output: 1 } }], {}, 3_000);
    const events = [
      userMessage("m1", "Begin."),
      did("s1"),
      userMessage("m2", "y".repeat(2_400)),
      did("s2"),
      userMessage("m3", LONG),
      summarized("z", "m2"),
    ];
    expect(await step(events)).toMatchObject({ kind: "summary", retainedFrom: "m3" });
  });
});

describe("an address inside the worker's network", () => {
  const refusing = async (operatorSet: boolean) => {
    server = await ModelServer.start([{ text: "Hello." }]);
    const outbound = outboundRule([]);
    const context = aContext({
      dir: "",
      outbound,
      assignment: {
        executionId: 7n,
        attempt: 1,
        provider: "openai-compatible",
        modelId: "openai-compatible/m",
        providerCredentials: { provider: "openai-compatible", apiKey: KEY, baseUrl: `${server.url}/v1`, operatorSet },
      },
    });
    const model = providerFor(context.ctx, () => {}, { limits: LIMITS, timers: systemTimers })!;
    const asked: ModelContext = {
      basePrompt: "",
      agentPrompt: "",
      modelId: "m",
      events: [message("Hello.")],
      earlier: [],
      tools: [],
      mode: "normal",
      directory: "/workspace",
      notices: [],
      rules: [],
      skills: [],
    };
    return (await model.step(asked, new AbortController().signal)) as ModelStep | undefined;
  };
  test("is not called for a team, and the run states why at once", async () => {
    expect(await refusing(false)).toMatchObject({
      next: {
        kind: "failed",
        failure: {
          code: "invalid_request",
          reason: "internal_address_refused",
          retryable: false,
          message: expect.stringContaining("MILLWRIGHT_ALLOWED_INTERNAL_HOSTS"),
        },
      },
    });
    expect(server.requests).toEqual([]);
  });
  test("is called where the operator has named it", async () => {
    expect(await refusing(true)).toMatchObject({ text: "Hello." });
  });
});

describe("the default model of an OpenAI-compatible server", () => {
  const wire = ["openai-compatible", "/v1"] as const;
  const asDefault = (answers: readonly ModelAnswer[]) => connect(wire, answers, {}, undefined, "default");

  test("is the first one that the server lists, for every call of the execution", async () => {
    const { step, requests, server: models } = await asDefault([{ text: "Done.", usage: { input: 1, output: 1 } }]);
    expect(await step()).toMatchObject({ text: "Done.", next: { kind: "done" } });
    models.models = ["another"];
    await step();
    expect(requests.map(({ model, key }) => [model, key])).toEqual([
      ["served-model", KEY],
      ["served-model", KEY],
    ]);
  });

  test("is one of that name if the server has it", async () => {
    const { step, requests, server: models } = await asDefault([{ text: "Done.", usage: { input: 1, output: 1 } }]);
    models.models = ["first", "default"];
    await step();
    expect(requests.map(({ model }) => model)).toEqual(["default"]);
  });

  test("is reported as missing if the server lists none", async () => {
    const { step, requests, server: models } = await asDefault([{ text: "never", usage: { input: 1, output: 1 } }]);
    models.models = [];
    expect(await step()).toMatchObject({
      next: {
        kind: "failed",
        failure: { code: "resource_not_found", message: expect.stringContaining("openai-compatible/<id>") },
      },
    });
    expect(requests).toEqual([]);
  });
});
