import { omitUndefined } from "@millwright/json";

/** A complete answer of a model; counts are disjoint, and absent ones are not sent. */
export type WholeAnswer = {
  readonly text?: string;
  /** A text as `input` is sent verbatim as arguments, also if malformed. */
  readonly calls?: readonly {
    readonly name: string;
    readonly input: object | string;
    /** Group of tools, where a wire has some. */ readonly namespace?: string;
  }[];
  readonly usage?: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead?: number;
    readonly cacheWrite?: number;
  };
  readonly end?: "length" | "refused";
};

/**
 * An answer in the encoding of one API: its events in order, as `[event name, data]`. The last ones alone mark its end.
 */
export type StreamedEvents = {
  readonly beginning: readonly StreamedEvent[];
  readonly ending: readonly StreamedEvent[];
};
type StreamedEvent = readonly [event: string, data: object | string];

export type WireName = "anthropic" | "openai" | "openai-compatible" | "google";

const argumentsOf = (input: object | string): string => (typeof input === "string" ? input : JSON.stringify(input));
const halves = (text: string): string[] =>
  [text.slice(0, Math.ceil(text.length / 2)), text.slice(Math.ceil(text.length / 2))].filter((half) => half !== "");
const typed = (data: { type: string }): StreamedEvent => [data.type, data];

function anthropic({ text = "", calls = [], usage, end }: WholeAnswer, model: string): StreamedEvents {
  const texts =
    text === ""
      ? []
      : [
          {
            start: { type: "text", text: "" },
            deltas: halves(text).map((half) => ({ type: "text_delta", text: half })),
          },
        ];
  const tools = calls.map(({ name, input }, index) => ({
    start: { type: "tool_use", id: `toolu_${index}`, name, input: {} },
    deltas: halves(argumentsOf(input)).map((half) => ({ type: "input_json_delta", partial_json: half })),
  }));
  const blocks = [...texts, ...tools].flatMap(({ start, deltas }, index) => [
    typed({ type: "content_block_start", index, content_block: start } as { type: string }),
    ...deltas.map((delta) => typed({ type: "content_block_delta", index, delta } as { type: string })),
    typed({ type: "content_block_stop", index } as { type: string }),
  ]);
  const counted = {
    input_tokens: usage?.input ?? 0,
    output_tokens: 1,
    ...omitUndefined({ cache_read_input_tokens: usage?.cacheRead, cache_creation_input_tokens: usage?.cacheWrite }),
  };
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: counted,
  };
  const reason =
    end === "length" ? "max_tokens" : end === "refused" ? "refusal" : calls.length > 0 ? "tool_use" : "end_turn";
  return {
    beginning: [typed({ type: "message_start", message } as { type: string }), ...blocks],
    ending: [
      typed({
        type: "message_delta",
        delta: { stop_reason: reason, stop_sequence: null },
        usage: { output_tokens: usage?.output ?? 0 },
      } as { type: string }),
      typed({ type: "message_stop" }),
    ],
  };
}

function openai({ text = "", calls = [], usage, end }: WholeAnswer, model: string): StreamedEvents {
  const event = (type: string, fields: object) => typed({ type, ...fields });
  const texts =
    text === ""
      ? []
      : [
          {
            item: {
              type: "message",
              id: "msg_1",
              role: "assistant",
              status: "completed",
              content: [{ type: "output_text", text, annotations: [] }],
            },
            deltas: halves(text).map((delta) =>
              event("response.output_text.delta", { item_id: "msg_1", output_index: 0, content_index: 0, delta }),
            ),
          },
        ];
  const tools = calls.map(({ name, input, namespace }, index) => ({
    item: {
      type: "function_call",
      id: `fc_${index}`,
      call_id: `call_${index}`,
      name,
      namespace,
      arguments: argumentsOf(input),
      status: "completed",
    },
    deltas: halves(argumentsOf(input)).map((delta) =>
      event("response.function_call_arguments.delta", {
        item_id: `fc_${index}`,
        output_index: texts.length + index,
        delta,
      }),
    ),
  }));
  const items = [...texts, ...tools].flatMap(({ item, deltas }, index) => [
    event("response.output_item.added", {
      output_index: index,
      item: "arguments" in item ? { ...item, arguments: "" } : { ...item, content: [] },
    }),
    ...deltas,
    event("response.output_item.done", { output_index: index, item }),
  ]);
  const counted = usage && {
    ...{
      input_tokens: usage.input + (usage.cacheRead ?? 0),
      output_tokens: usage.output,
      total_tokens: usage.input + (usage.cacheRead ?? 0) + usage.output,
    },
    input_tokens_details: usage.cacheRead === undefined ? undefined : { cached_tokens: usage.cacheRead },
  };
  const isIncomplete = end !== undefined;
  const reason = end === "length" ? "max_output_tokens" : "content_filter";
  const response = {
    id: "resp_1",
    created_at: 1,
    model,
    usage: counted ?? null,
    incomplete_details: isIncomplete ? { reason } : undefined,
  };
  return {
    beginning: [event("response.created", { response: { id: "resp_1", created_at: 1, model } }), ...items],
    ending: [event(isIncomplete ? "response.incomplete" : "response.completed", { response })],
  };
}

function compatible({ text = "", calls = [], usage, end }: WholeAnswer, model: string): StreamedEvents {
  const chunk = (delta: object, finish: string | null = null): StreamedEvent => [
    "",
    {
      id: "chat_1",
      object: "chat.completion.chunk",
      created: 1,
      model,
      choices: [{ index: 0, delta, finish_reason: finish }],
    },
  ];
  const tools = calls.flatMap(({ name, input }, index) => [
    chunk({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name, arguments: "" } }] }),
    ...halves(argumentsOf(input)).map((half) => chunk({ tool_calls: [{ index, function: { arguments: half } }] })),
  ]);
  const counted = usage && {
    ...{ prompt_tokens: usage.input + (usage.cacheRead ?? 0), completion_tokens: usage.output },
    prompt_tokens_details: usage.cacheRead === undefined ? undefined : { cached_tokens: usage.cacheRead },
  };
  const reason =
    end === "length" ? "length" : end === "refused" ? "content_filter" : calls.length > 0 ? "tool_calls" : "stop";
  return {
    beginning: [
      chunk({ role: "assistant", content: "" }),
      ...halves(text).map((half) => chunk({ content: half })),
      ...tools,
    ],
    ending: [
      chunk({}, reason),
      ...(counted
        ? [
            [
              "",
              { id: "chat_1", object: "chat.completion.chunk", created: 1, model, choices: [], usage: counted },
            ] as const,
          ]
        : []),
      ["", "[DONE]"],
    ],
  };
}

function google({ text = "", calls = [], usage, end }: WholeAnswer): StreamedEvents {
  const soFar = usage && {
    usageMetadata: {
      promptTokenCount: usage.input + (usage.cacheRead ?? 0),
      totalTokenCount: usage.input + (usage.cacheRead ?? 0),
    },
  };
  const chunk = (parts: readonly object[], more: object = {}): StreamedEvent => [
    "",
    { candidates: [{ index: 0, content: { role: "model", parts }, ...more }], ...soFar },
  ];
  const counted = usage && {
    ...{
      promptTokenCount: usage.input + (usage.cacheRead ?? 0),
      candidatesTokenCount: usage.output,
      totalTokenCount: usage.input + (usage.cacheRead ?? 0) + usage.output,
    },
    ...omitUndefined({ cachedContentTokenCount: usage.cacheRead }),
  };
  const reason = end === "length" ? "MAX_TOKENS" : end === "refused" ? "SAFETY" : "STOP";
  const [, last] = chunk([{ text: "" }], { finishReason: reason });
  return {
    beginning: [
      ...halves(text).map((half) => chunk([{ text: half }])),
      ...calls.map(({ name, input }, index) =>
        chunk([{ functionCall: { name, args: input }, thoughtSignature: `signature-${index}` }]),
      ),
    ],
    ending: [["", { ...(last as object), usageMetadata: counted }]],
  };
}

export const WIRE_FORMATS: Readonly<Record<WireName, (answer: WholeAnswer, model: string) => StreamedEvents>> = {
  anthropic,
  openai,
  "openai-compatible": compatible,
  google,
};
