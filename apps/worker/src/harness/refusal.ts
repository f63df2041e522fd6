import type { ModelProvider } from "../model/model-provider.ts";
import { INSTALL_HINT } from "../sandbox/probe.ts";

/**
 * Returns why an execution cannot start on this worker, as a message for users, or undefined if it can. Nothing is
 * executed without a sandbox unless the operator chose that.
 */
export function refusalOf(
  provider: ModelProvider | undefined,
  providerName: string,
  sandbox: { kind: "bwrap" | "none"; isChosen?: boolean },
  hasCredentials: boolean,
): string | undefined {
  if (!provider)
    return `This worker cannot call models of the provider "${providerName}". Use a worker that offers it, or the model "scripted".`;
  if (sandbox.kind === "none" && !sandbox.isChosen)
    return `This worker has no sandbox, so it executes no runs. ${INSTALL_HINT}`;
  if (provider.name !== "scripted" && !hasCredentials) return noAccess(providerName);
  return undefined;
}

/**
 * Returns why a third-party agent program cannot start on this worker, as a message for users, or undefined if it can.
 */
export function harnessRefusalOf(
  harness: string,
  provider: string,
  sandbox: { kind: "bwrap" | "none" },
  { isThere, hasCredentials }: { isThere: boolean; hasCredentials: boolean },
): string | undefined {
  if (sandbox.kind === "none") return `The harness "${harness}" requires a sandbox. ${INSTALL_HINT}`;
  if (!isThere) return `This worker no longer has the harness "${harness}".`;
  return hasCredentials ? undefined : noAccess(provider);
}

const noAccess = (provider: string): string =>
  `This worker has no access to the model provider "${provider}": it is no longer configured, or only for the platform's own workers. Give the team its own key as a managed secret (docs/guides/models.md), then answer here to continue.`;
