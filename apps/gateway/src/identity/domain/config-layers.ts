import type { JsonObject } from "@bufbuild/protobuf";
import type { Agent } from "./agent-identity.ts";

/** One level of run configuration: keys of AgentConfigSnapshot and `prompt` (identity.v1 ConfigLayer). */
export type ConfigLayer = { source: "agent" | "factory" | "team"; uid: string; version: number; config: JsonObject };

/**
 * Returns the configuration layer of an agent. Keys that the agent does not set are absent, so that lower levels apply.
 */
export function agentLayer(agent: Agent): ConfigLayer {
  const { base_model, default_runner_uid, memory, on_behalf_of_enabled: _notForRuns, ...same } = agent.config;
  const config = {
    ...same,
    name: agent.name,
    ...(agent.prompt === "" ? {} : { prompt: agent.prompt }),
    ...(base_model ? { model_id: base_model } : {}),
    ...(default_runner_uid ? { runner_id: default_runner_uid } : {}),
    ...(memory?.attached_stores ? { memory_stores: memory.attached_stores } : {}),
  };
  return { source: "agent", uid: agent.uid, version: agent.version, config: config as JsonObject };
}
