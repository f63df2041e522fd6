import type { JsonObject } from "@bufbuild/protobuf";
import {
  jsonSchema,
  streamText,
  tool,
  type AssistantModelMessage,
  type LanguageModelUsage,
  type ModelMessage,
  type SystemModelMessage,
} from "ai";
import type { CallUsage, TokenCounts } from "../../context/platform-client.ts";
import type { Timers } from "../../time/timers.ts";
import { isAnObject } from "../event-fields.ts";
import type { ToolDescription } from "../model-provider.ts";
import { CallBroken } from "./call-failure.ts";
import type { Wire } from "./language-model.ts";
import { charactersIn, countsIn, interruptedUsage, tokenCounts } from "./token-counts.ts";

export type ModelCall = {
  readonly model: Awaited<ReturnType<Wire["open"]>>;
  readonly system: SystemModelMessage;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ToolDescription[];
  readonly options?: NonNullable<Wire["options"]>;
  /** Receives the response's text as it is generated. */
  readonly onText?: (delta: string) => void;
  /** Set if the response must call a tool; absent: optional. */
  readonly toolChoice?: "required";
  /** The maximum number of tokens of the response; absent: the provider's default. */
  readonly outputTokensMax?: number;
};

export type ModelResponse = {
  readonly text: string;
  /** The tool calls, with the provider's own ids. */
  readonly toolCalls: readonly {
    readonly id: string;
    readonly name: string;
    readonly input: JsonObject;
    readonly malformed?: string;
  }[];
  readonly isCutShort: boolean;
  readonly isRefused: boolean;
  /** The response in the provider's own form, including opaque parts, to be sent back in the next call. */
  readonly message: AssistantModelMessage;
  readonly usage: TokenCounts;
};

/** Thrown if a response did not complete. */
export class CallEnded extends Error {
  /** The tokens that it used nevertheless; undefined if no response had begun. */
  readonly used: Pick<CallUsage, "usage" | "isEstimated"> | undefined;
  constructor(cause: unknown, used: CallEnded["used"]) {
    super("The call ended without a response.", { cause });
    this.used = used;
  }
}

/**
 * Makes one streamed call and aborts it after `silenceMs` without data. Tools are described to the model but not run
 * here. Throws `CallEnded` with the cause, also if `signal` is aborted.
 */
export async function callModel(
  call: ModelCall,
  { timers, silenceMs }: { timers: Timers; silenceMs: number },
  signal: AbortSignal,
): Promise<ModelResponse> {
  // the library writes warnings to the console
  (globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;
  const silence = new AbortController();
  const listen = () =>
    timers.after(silenceMs, () => silence.abort(new CallBroken(`no data was received for ${silenceMs / 1_000} s`)));
  let cancel = listen();
  let ended: { usage: LanguageModelUsage; finishReason: string; raw: string | undefined } | undefined;
  let error: unknown;
  let counted: TokenCounts = {};
  let [hasBegun, characters] = [false, 0];
  const toolCalls: { id: string; name: string; input: JsonObject; malformed?: string }[] = [];
  let text = "";
  try {
    const result = streamText({
      ...{ model: call.model, system: call.system, messages: [...call.messages], maxRetries: 0, onError: () => {} },
      tools: Object.fromEntries(
        call.tools.map(({ name, description, inputSchema }) => [
          name,
          tool({ description, inputSchema: jsonSchema(inputSchema as never) }),
        ]),
      ),
      abortSignal: AbortSignal.any([signal, silence.signal]),
      includeRawChunks: true,
      providerOptions: call.options,
      toolChoice: call.toolChoice,
      maxOutputTokens: call.outputTokensMax,
    });
    for await (const part of result.fullStream) {
      cancel();
      cancel = listen();
      if (part.type === "text-delta") {
        text += part.text;
        call.onText?.(part.text);
      } else if (part.type === "tool-call")
        toolCalls.push({ id: part.toolCallId, name: part.toolName, ...inputOf(part.input) });
      else if (part.type === "finish-step")
        ended = { usage: part.usage, finishReason: part.finishReason, raw: part.rawFinishReason };
      else if (part.type === "raw") {
        hasBegun = true;
        counted = { ...counted, ...countsIn(part.rawValue) };
        characters += charactersIn(part.rawValue);
      } else if (part.type === "error") error ??= part.error;
    }
    const isComplete =
      ended !== undefined &&
      (ended.finishReason !== "other" || ended.raw !== undefined) &&
      ended.finishReason !== "error";
    if (!ended || !isComplete || error !== undefined) throw error ?? new CallBroken("its response was cut off");
    const message = (await result.response).messages.find(({ role }) => role === "assistant") as
      | AssistantModelMessage
      | undefined;
    return {
      ...{ text, toolCalls, message: message ?? { role: "assistant", content: text } },
      ...{ isCutShort: ended.finishReason === "length", isRefused: ended.finishReason === "content-filter" },
      usage: tokenCounts(ended.usage) ?? {},
    };
  } catch (cause) {
    const measured = (ended && tokenCounts(ended.usage)) ?? counted;
    const used = hasBegun
      ? interruptedUsage(measured, [call.system, call.messages, call.tools], characters)
      : undefined;
    throw new CallEnded(silence.signal.aborted ? silence.signal.reason : cause, used);
  } finally {
    cancel();
  }
}

/** Returns the arguments of a tool call. `malformed` is the text as the model sent it, if it is not a JSON object. */
const inputOf = (input: unknown): { input: JsonObject; malformed?: string } =>
  isAnObject(input)
    ? { input }
    : { input: {}, malformed: typeof input === "string" ? input : (JSON.stringify(input) ?? "") };
