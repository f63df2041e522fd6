import type { JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { gatewayWire } from "./gateway-wires.ts";
import { withAllAnswers } from "./gemini-contents.ts";

const content = (role: string, ...parts: JsonObject[]): JsonObject => ({ role, parts });
const call = (name: string, id?: string) => ({ functionCall: { name, args: {}, ...(id === undefined ? {} : { id }) } });
const answer = (name: string) => ({ functionResponse: { name, response: { output: "x" } } });

test("calls without a result get one in their position; everything else is unchanged", () => {
  const [before, lost, next] = [
    content("user", { text: "Do it." }),
    content("model", { text: "I do." }, call("shell", "c1"), call("read")),
    content("user", { text: "Stop." }),
  ];
  const interrupted = { error: "It was interrupted; its effect is unknown." };
  const repaired = content(
    "user",
    { functionResponse: { id: "c1", name: "shell", response: interrupted } },
    { functionResponse: { name: "read", response: interrupted } },
  );
  expect(withAllAnswers({ contents: [before, lost, next], tools: [] })).toEqual({
    contents: [before, lost, repaired, next],
    tools: [],
  });
  expect(withAllAnswers({ contents: [before, lost] })).toEqual({ contents: [before, lost, repaired] });
  const whole = {
    contents: [
      before,
      content("model", call("shell")),
      content("user", answer("shell")),
      content("model", { text: "Done." }),
    ],
    generationConfig: { temperature: 1 },
  };
  expect(withAllAnswers(whole)).toEqual(whole);
  expect(withAllAnswers({ model: "m" })).toEqual({ model: "m" });
});

test("only what its turn is lost by has an ending: a stream, or a whole answer", () => {
  const ending = gatewayWire("google")!.ending!;
  const stream = ending("/v1beta/models/m:streamGenerateContent");
  expect([stream.contentType, JSON.parse(stream.body.trim().replace("data: ", ""))]).toEqual([
    "text/event-stream",
    { candidates: [expect.objectContaining({ finishReason: "STOP" })] },
  ]);
  expect(JSON.parse(ending("/v1beta/models/m:generateContent").body)).toEqual({
    candidates: [expect.objectContaining({ finishReason: "STOP" })],
  });
  expect(gatewayWire("anthropic")!.ending).toBeUndefined();
});
