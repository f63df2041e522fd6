import { bestEffort } from "@millwright/errors";
import type { ExecutionContext } from "../executions/execution-context.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { HarnessSession } from "./harness-adapter.ts";

const BYTES_MAX = 32 * 1024 * 1024;

/**
 * Hands what the harness has written down of its session to the platform, masked: it is the run's transcript from then on. One that is not to be
 * had, or too long, costs itself alone: the run has its events. Never rejects.
 */
export async function keepTranscript({ platform, mask, log }: Pick<ExecutionContext, "platform" | "mask" | "log">, sandbox: Sandbox, session: HarnessSession | undefined): Promise<void> {
  const file = session?.file;
  if (file === undefined) return;
  await bestEffort("keep the transcript of a harness", log, async () => {
    const text = (await sandbox.readFile(sandbox.workspace, file, BYTES_MAX)).toString("utf8");
    await platform.putTranscript(Buffer.from(mask(text)));
  });
}
