import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBubblewrap, findPrlimit } from "./bubblewrap.ts";
import type { Sandbox } from "./sandbox.ts";
import type { SandboxKind } from "./spec.ts";
import { startWorkspaceSandbox } from "./start-sandbox.ts";

export type ProbeResult = { kind: SandboxKind; features: string[]; warning?: string };

/** How to get a sandbox; part of every text that says there is none. */
export const INSTALL_HINT = "Install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap), or set MILLWRIGHT_SANDBOX=none to run agents without a border.";

/**
 * Finds out, by a true self-test, which sandbox this host can give. `bwrap` demanded and not working throws, with the reason;
 * `auto` then falls back to `none` with a warning, which is good for scripted runs only.
 */
export async function probeSandbox(config: { readonly sandbox: "auto" | "bwrap" | "none" }): Promise<ProbeResult> {
  if (config.sandbox === "none") {
    return { kind: "none", features: features("none"), warning: "Runs are not sandboxed (MILLWRIGHT_SANDBOX=none): their commands can read and change whatever this user can." };
  }
  const fault = await selfTest();
  if (fault === undefined) return { kind: "bwrap", features: features("bwrap") };
  if (config.sandbox === "bwrap") throw new Error(`The bubblewrap sandbox does not work here: ${fault} ${INSTALL_HINT}`);
  return { kind: "none", features: features("none"), warning: `No sandbox: ${fault} Only scripted runs are taken, and their commands run as this user. ${INSTALL_HINT}` };
}

function features(kind: SandboxKind): string[] {
  const limits = findPrlimit() ? ["file-size-limit", ...(kind === "bwrap" && process.getuid?.() !== 0 ? ["process-limit"] : [])] : [];
  return kind === "bwrap" ? ["filesystem", "no-network", "process-namespace", "no-capabilities", ...limits] : limits;
}

/** What does not hold, or undefined when all does. */
async function selfTest(): Promise<string | undefined> {
  if (!findBubblewrap()) return "bubblewrap is not installed.";
  const dir = await mkdtemp(join(tmpdir(), "millwright-probe-"));
  try {
    await writeFile(join(dir, "canary"), "x");
    const sandbox = await startWorkspaceSandbox("bwrap", dir, {});
    try {
      return await firstFault(sandbox, join(dir, "canary"));
    } finally {
      await sandbox.stop();
    }
  } catch (error) {
    return error instanceof Error ? error.message : "unknown error";
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function firstFault(sandbox: Sandbox, canary: string): Promise<string | undefined> {
  const checks: [command: string, fault: string][] = [
    ["test $(id -u) = 1000", "it does not run as its own user."],
    ["echo x > /workspace/x && rm /workspace/x", "its workspace cannot be written."],
    [`! test -e '${canary}'`, "it sees files of the host."],
    ["! touch /usr/millwright-probe 2>/dev/null", "it can write to the host's programs."],
    ["test $(grep -c : /proc/net/dev) = 1", "it sees the network."],
  ];
  for (const [command, fault] of checks) {
    const { exitCode } = await sandbox.exec(command, { timeoutMs: 10_000 });
    if (exitCode !== 0) return fault;
  }
  return undefined;
}
