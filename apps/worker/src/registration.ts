import type { Backend } from "./backends/backend.ts";
import type { WorkerConfig } from "./config.ts";
import { workerVersion as version } from "./protocol/worker-version.ts";
import type { WorkerOptions } from "./running-worker.ts";

/** Architecture names of runner definitions, by the names that Node.js uses. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/** Returns the registration of a worker that runs executions on this machine. */
export const directRegistration = (config: WorkerConfig, sandbox: WorkerOptions["sandbox"]) => ({
  workerId: config.workerId,
  version,
  backend: "direct",
  slots: config.offer === undefined ? config.slots : 1,
  harnesses: [
    { type: "oz", version },
    ...[...(sandbox.host?.harnesses ?? [])].map(([type, program]) => ({ type, version: program.version })),
  ],
  sandbox: sandbox.kind,
  sandboxFeatures: [...sandbox.features],
  images: [...(sandbox.host?.rootfs?.keys() ?? [])],
  arch: ARCHITECTURES[process.arch] ?? "",
});

/** Returns the registration of a worker that has executions run on other machines. */
export const dispatcherRegistration = (config: WorkerConfig, backend: Backend) => ({
  workerId: config.workerId,
  version,
  backend: backend.name,
  slots: config.slots,
  harnesses: config.backendHarnesses.map((type) => ({ type, version: "" })),
  sandbox: "remote",
  sandboxFeatures: [`backend=${backend.name}`],
  images: [...(backend.images ?? [])],
});
