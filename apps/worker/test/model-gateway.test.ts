import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "@jest/globals";
import { invalidArgument } from "@millwright/errors";
import { eventually } from "@millwright/testing";
import { ModelGateway } from "../src/adapters/model-gateway.ts";
import { TokenBudget } from "../src/conversation/token-budget.ts";
import type { RunFailure } from "../src/model/model-provider.ts";
import { aContext, executionDir } from "./support/a-context.ts";
import { withDirectory } from "./support/sandboxes.ts";

/** Sends one model call as an agent program does; returns the response. */
async function callModel({ relay: { socket } }: ModelGateway): Promise<{ status: number | undefined; body: unknown }> {
  const sent = request({ socketPath: socket, path: "/v1/messages", method: "POST" });
  sent.end(JSON.stringify({ model: "some-model", max_tokens: 10, messages: [{ role: "user", content: "x" }] }));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { status: response.statusCode, body: JSON.parse(await text(response)) };
}

test.each<[string, () => { outcome: string; message: string }, Partial<RunFailure>]>([
  [
    "without a price",
    () => {
      throw invalidArgument("cost_limit_unpriced", "It has no price.");
    },
    { code: "invalid_request", reason: "cost_limit_unpriced", message: "It has no price." },
  ],
  [
    "that nothing is left for",
    () => ({ outcome: "exceeded", message: "Nothing is left." }),
    { code: "budget_exceeded", reason: "cost_limit", message: "Nothing is left." },
  ],
])(
  "a model call %s is refused with a code for the program, and ends the run with the same cause",
  (_call, reserveCost, failure) =>
    withDirectory(async (root) => {
      const assignment = {
        provider: "anthropic",
        modelId: "some-model",
        costLimited: true,
        providerCredentials: { provider: "anthropic", apiKey: "key", baseUrl: "http://127.0.0.1:9" },
      };
      const { ctx } = aContext({ dir: await executionDir(root, "e1"), assignment, reserveCost });
      const gateway = await ModelGateway.listen({ ctx, budget: new TokenBudget(0, []) });
      const failures: RunFailure[] = [];
      gateway.onFailure = (reported) => failures.push(reported);
      const { reason: code, message } = failure;
      expect(await callModel(gateway)).toEqual({
        status: 400,
        body: { type: "error", error: { type: "invalid_request_error", code, message } },
      });
      expect(failures).toEqual([{ retryable: false, ...failure }]);
      gateway.close();
    }),
);

test("a complete answer without token counts is reported without counts", () =>
  withDirectory(async (root) => {
    const provider = createServer((_, response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ type: "message", content: [{ type: "text", text: "hello" }] })),
    ).listen(0, "127.0.0.1");
    await once(provider, "listening");
    const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
    const assignment = {
      ...{ provider: "anthropic", modelId: "some-model" },
      providerCredentials: { provider: "anthropic", apiKey: "key", baseUrl },
    };
    const { ctx, usage } = aContext({ dir: await executionDir(root, "e1"), assignment });
    const gateway = await ModelGateway.listen({ ctx, budget: new TokenBudget(0, []) });
    expect((await callModel(gateway)).status).toBe(200);
    await eventually(() => expect(usage).toMatchObject([{ modelId: "some-model", usage: {} }]));
    expect(Object.keys(usage[0]!.usage)).toEqual([]);
    gateway.close();
    provider.close();
  }));
