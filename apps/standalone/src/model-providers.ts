import type { OrchestratorOptions } from "@millwright/orchestrator/compose";
import type { StandaloneConfig } from "./config.ts";

type Providers = NonNullable<OrchestratorOptions["modelProviders"]>;

/** The providers that the environment of this process configures. */
export function modelProviders(config: StandaloneConfig): Providers {
  const withKey = (provider: string, apiKey: string | undefined, baseUrl: string | undefined): Providers => (apiKey ? [{ provider, apiKey, baseUrl: baseUrl ?? "" }] : []);
  const { compatibleUrl, compatibleKey = "", compatibleModels } = config;
  return [
    ...withKey("anthropic", config.anthropicKey, config.anthropicUrl),
    ...withKey("openai", config.openaiKey, config.openaiUrl),
    ...withKey("google", config.googleKey, config.googleUrl),
    ...(compatibleUrl ? [{ provider: "openai-compatible", apiKey: compatibleKey, baseUrl: compatibleUrl, models: compatibleModels }] : []),
  ];
}
