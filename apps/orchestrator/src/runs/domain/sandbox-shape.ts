import { isObject, type JsonObject } from "../../catalog/domain/agent-config.ts";

/** The resource limits of a sandbox; 0 = not limited. */
export type SandboxShape = { readonly vcpus: number; readonly memoryGb: number };

const GIB = 1024 ** 3;

/** Returns the shape that a worker reports with the event `sandbox_ready`; undefined if it reports no limits. */
export function reportedShape({ limits }: JsonObject): SandboxShape | undefined {
  if (!isObject(limits)) return undefined;
  return { vcpus: amount(limits["cpus"]), memoryGb: amount(limits["memory_bytes"]) / GIB };
}

const amount = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
