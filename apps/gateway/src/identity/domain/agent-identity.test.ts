import { describe, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { BLANK, withFields, withSecrets, type AgentFields, type AgentParts } from "./agent-identity.ts";

const agent: AgentParts = {
  name: "builder",
  agentType: "IMPLEMENT",
  description: "d",
  prompt: "p",
  config: { base_model: "auto", worker_host: "w1", secrets: [{ name: "A" }], mcp_servers: { x: { url: "u" } } },
  concurrencyLimit: 3,
  queuePriority: 1,
  queuePaused: false,
};

describe("a partial update", () => {
  test("leaves fields unchanged that are absent or null", () => {
    expect(withFields(agent, {})).toEqual(agent);
    expect(withFields(agent, { name: null, prompt: null, base_model: null, secrets: null, harness: null })).toEqual(
      agent,
    );
  });
  test.each<[AgentFields, Record<string, unknown>]>([
    [{ worker_host: "" }, { worker_host: undefined }],
    [{ worker_host: "  " }, { worker_host: undefined }],
    [{ secrets: [] }, { secrets: undefined }],
    [{ mcp_servers: {} }, { mcp_servers: undefined }],
    [{ base_model: "scripted" }, { base_model: "scripted" }],
    [{ worker_host: " w2 " }, { worker_host: "w2" }],
    [{ on_behalf_of_enabled: false }, { on_behalf_of_enabled: false }],
  ])("%j changes that field alone", (sent, changed) => {
    expect(withFields(agent, sent).config).toEqual({ ...agent.config, ...changed });
  });
});

test.each<[string, AgentFields]>([
  ["an empty name", { name: " " }],
  ["a third-party harness with a base model", { harness: { type: "claude" } }],
  ["a base_harness that contradicts the harness", { harness: { type: "oz" }, base_harness: "claude" }],
  ["a secret named twice", { secrets: [{ name: "A" }, { name: "A" }] }],
  ["a memory store attached twice", { memory: { attached_stores: [{ uid: "1" }, { uid: "1" }] } }],
])("%s is refused", (_what, sent) => {
  expect(() => withFields(agent, sent)).toThrow(domainError({ kind: "invalid_argument", reason: "invalid_agent" }));
});

test("a new agent requires a name and has the type CUSTOM by default", () => {
  expect(() => withFields(BLANK, {})).toThrow(domainError({ reason: "invalid_agent" }));
  expect(withFields(BLANK, { name: " a ", agent_type: null })).toMatchObject({ name: "a", agentType: "CUSTOM" });
});

test("the deprecated base_harness sets harness.type", () => {
  expect(withFields(BLANK, { name: "a", base_harness: "claude" }).config).toEqual({ harness: { type: "claude" } });
});

test("appended secrets are added once, in order", () => {
  expect(withSecrets(agent.config, ["B", "A", "B"]).secrets).toEqual([{ name: "A" }, { name: "B" }]);
});
