import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const ADMIN = fileURLToPath(new URL("../../../admin/bin/millwright-admin.mjs", import.meta.url));

/** Runs `millwright-admin` as an operator does and returns its exit code and output. */
export async function millwrightAdmin(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [ADMIN, ...args], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}
