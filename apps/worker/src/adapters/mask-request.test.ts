import { expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import { maskRequest } from "./mask-request.ts";

const SECRETS = /s3cret|user|auto|shell/g;
const mask = (text: string): string => text.replaceAll(SECRETS, "***");

test.each<[wire: string, request: JsonObject, masked: JsonObject]>([
  [
    "Anthropic",
    {
      model: "auto",
      system: [{ type: "text", text: "s3cret", cache_control: { type: "auto" } }],
      tool_choice: { type: "auto" },
      messages: [
        { role: "user", content: "s3cret" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "s3cret", signature: "s3cret" },
            { type: "tool_use", id: "s3cret", name: "shell", input: { type: "s3cret", s3cret: ["s3cret"] } },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "s3cret",
              content: [
                { type: "text", text: "a s3cret" },
                { type: "image", source: { type: "base64", data: "s3cret" } },
              ],
            },
          ],
        },
      ],
    },
    {
      model: "auto",
      system: [{ type: "text", text: "***", cache_control: { type: "auto" } }],
      tool_choice: { type: "auto" },
      messages: [
        { role: "user", content: "***" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "s3cret", signature: "s3cret" },
            { type: "tool_use", id: "s3cret", name: "shell", input: { type: "***", "***": ["***"] } },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "s3cret",
              content: [
                { type: "text", text: "a ***" },
                { type: "image", source: { type: "base64", data: "s3cret" } },
              ],
            },
          ],
        },
      ],
    },
  ],
  [
    "OpenAI Responses",
    {
      instructions: "s3cret",
      tool_choice: "auto",
      include: ["auto"],
      input: [
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "s3cret" },
            { type: "input_image", image_url: "data:image/png;base64,s3cret" },
          ],
        },
        { type: "function_call", call_id: "s3cret", name: "shell", arguments: '{"a":"s3cret"}' },
        { type: "function_call_output", call_id: "s3cret", output: "s3cret" },
      ],
      tools: [
        {
          type: "function",
          name: "shell",
          description: "s3cret",
          parameters: { properties: { user: { enum: ["auto"], description: "s3cret" } } },
        },
      ],
    },
    {
      instructions: "***",
      tool_choice: "auto",
      include: ["auto"],
      input: [
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "***" },
            { type: "input_image", image_url: "data:image/png;base64,s3cret" },
          ],
        },
        { type: "function_call", call_id: "s3cret", name: "shell", arguments: '{"a":"***"}' },
        { type: "function_call_output", call_id: "s3cret", output: "***" },
      ],
      tools: [
        {
          type: "function",
          name: "shell",
          description: "***",
          parameters: { properties: { user: { enum: ["auto"], description: "***" } } },
        },
      ],
    },
  ],
  [
    "OpenAI chat",
    {
      messages: [
        { role: "user", content: "s3cret" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "auto", type: "function", function: { name: "shell", arguments: '"s3cret"' } }],
        },
      ],
      stream_options: { include_usage: true },
    },
    {
      messages: [
        { role: "user", content: "***" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "auto", type: "function", function: { name: "shell", arguments: '"***"' } }],
        },
      ],
      stream_options: { include_usage: true },
    },
  ],
  [
    "Google",
    {
      systemInstruction: { parts: [{ text: "s3cret" }] },
      contents: [
        {
          role: "user",
          parts: [
            { text: "s3cret", thoughtSignature: "s3cret" },
            { functionCall: { name: "shell", args: { s3cret: 1 } } },
            { functionResponse: { name: "shell", response: { output: "s3cret" } } },
          ],
        },
      ],
    },
    {
      systemInstruction: { parts: [{ text: "***" }] },
      contents: [
        {
          role: "user",
          parts: [
            { text: "***", thoughtSignature: "s3cret" },
            { functionCall: { name: "shell", args: { "***": 1 } } },
            { functionResponse: { name: "shell", response: { output: "***" } } },
          ],
        },
      ],
    },
  ],
])("masks free text in a request of %s, and leaves its form alone", (_wire, request, masked) =>
  expect(maskRequest(request, mask)).toEqual(masked),
);
