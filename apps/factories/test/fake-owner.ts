import type { JsonObject } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { definitions } from "@millwright/contracts";

type Diagnostic = { path: string; keys: string[]; code: string; message: string; severity: string };

/**
 * An owner of a part of definitions. Staged versions have no effect, and activation never returns to an older version.
 */
export class FakeOwner {
  readonly #kind: "agent" | "runner" | "nothing";
  readonly staged = new Map<string, JsonObject>();
  readonly dropped: string[] = [];
  readonly active = new Map<string, number>();
  /** The diagnostics of the next stages. */
  diagnostics: Diagnostic[] = [];
  /** Thrown by the next stages. */
  failure: Error | undefined;
  /** Activations wait for this promise. */
  gate: Promise<void> = Promise.resolve();
  /** Called during each stage. */
  onStage: () => Promise<void> = async () => {};
  stages = 0;
  /** Whether plans state that everything is already served as requested. */
  isServing = false;
  /** The plan to return instead. */
  plan: { kind: string; name: string; action: string; changedFields: string[] }[] | undefined;

  constructor(kind: "agent" | "runner" | "nothing") {
    this.#kind = kind;
  }

  /** Resets all state, including injected faults. */
  reset(): void {
    this.staged.clear();
    this.active.clear();
    this.dropped.length = 0;
    this.diagnostics = [];
    this.failure = undefined;
    this.gate = Promise.resolve();
    this.onStage = async () => {};
    this.stages = 0;
    this.isServing = false;
    this.plan = undefined;
  }

  activeDefinition(factoryUid: string): JsonObject | undefined {
    return this.staged.get(`${factoryUid}/${this.active.get(factoryUid) ?? 0}`);
  }

  service(): ServiceImpl<typeof definitions.DefinitionOwnerService> {
    return {
      stageDefinition: async ({ factoryUid, version, definition = {}, dryRun }) => {
        await this.onStage();
        if (this.failure) throw this.failure;
        if (!dryRun) {
          this.stages += 1;
          if (this.diagnostics.every(({ severity }) => severity === "warning"))
            this.staged.set(`${factoryUid}/${version}`, definition);
        }
        const names = ((definition[`${this.#kind}s`] ?? []) as { name: string }[]).map(({ name }) => name);
        return {
          diagnostics: this.diagnostics,
          plan:
            this.plan ??
            names.map((name) => ({ kind: this.#kind, name, action: this.isServing ? "unchanged" : "create" })),
        };
      },
      discardDefinition: async ({ factoryUid, version }) => {
        this.staged.delete(`${factoryUid}/${version}`);
        this.dropped.push(String(version));
        return {};
      },
      activateDefinition: async ({ factoryUid, version }) => {
        await this.gate;
        const activeVersion = Math.max(Number(version), this.active.get(factoryUid) ?? 0);
        this.active.set(factoryUid, activeVersion);
        return { activeVersion: BigInt(activeVersion) };
      },
    };
  }
}
