import { geminiAdapter } from "./acp/gemini-adapter.ts";
import { opencodeAdapter } from "./acp/opencode-adapter.ts";
import type { HarnessAdapter } from "./harness-adapter.ts";
import { claudeAdapter } from "./claude/claude-adapter.ts";
import { codexAdapter } from "./codex/codex-adapter.ts";

/** Third-party harnesses that this release supports. */
export const ADAPTERS: readonly HarnessAdapter[] = [claudeAdapter, codexAdapter, geminiAdapter, opencodeAdapter];

export const adapterNamed = (type: string): HarnessAdapter | undefined =>
  ADAPTERS.find((adapter) => adapter.type === type);
