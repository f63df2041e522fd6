import { bestEffort } from "@millwright/errors";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ConversationEvent } from "../model/model-provider.ts";
import type { HarnessSession } from "./harness-adapter.ts";
import { unknownLinesIn } from "./unknown-lines.ts";

const BYTES_MAX = 32 * 1024 * 1024;

/**
 * Uploads the harness's own session record, masked, as the run's transcript, followed by its unknown lines. This is
 * best effort: if the record is missing or too long, the run still has its events. Never rejects.
 */
export async function storeTranscript(
  { platform, mask, log }: Pick<ExecutionContext, "platform" | "mask" | "log">,
  sandbox: Sandbox,
  session: HarnessSession | undefined,
  events: readonly ConversationEvent[],
): Promise<void> {
  const file = session?.file;
  if (file === undefined) return;
  await bestEffort("store the transcript of a harness", log, async () => {
    const text = (await sandbox.readFile(sandbox.workspace, file, BYTES_MAX)).toString("utf8");
    const unknown = unknownLinesIn(events).map((line) => `${line}\n`);
    const gap = unknown.length === 0 || text === "" || text.endsWith("\n") ? "" : "\n";
    await platform.putTranscript(Buffer.from(mask([text, gap, ...unknown].join(""))));
  });
}
