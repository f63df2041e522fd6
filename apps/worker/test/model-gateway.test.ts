import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test } from "@jest/globals";
import { invalidArgument } from "@millwright/errors";
import { ModelGateway } from "../src/adapters/model-gateway.ts";
import { TokenBudget } from "../src/harness/token-budget.ts";
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
