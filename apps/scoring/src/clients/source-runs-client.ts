import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { SourceRun } from "../usecases/compose-task.ts";

/** Returns the client for runs that tasks are created from. */
export function sourceRunsClient(transport: Transport, signer: CallerSigner) {
  const runs = clientFor(orchestrator.RunService, transport, { signer });
  const evidence = clientFor(orchestrator.EvidenceService, transport, { signer });
  return {
    /** Checks that the caller can see a run. Errors: run_not_found (absent or not visible to the caller). */
    async requireVisible(caller: Caller, runUid: string): Promise<void> {
      await runs.getRun({ runUid }, call(caller));
    },
    /** Returns a run with its repositories. Errors: run_not_found. */
    async get(caller: Caller, runUid: string): Promise<SourceRun> {
      const { run } = await runs.getRun({ runUid }, call(caller));
      if (!run) throw notFound("run");
      const { uid, title, prompt, submittedPrompt, factoryUid } = run;
      const { repositories } = await evidence.getRunRepositories(
        { runUid },
        call(serviceCaller(signer.service, newUid())),
      );
      const environmentUid = run.agentConfig?.["environment_id"];
      return {
        uid,
        title,
        prompt: submittedPrompt ?? prompt,
        factoryUid: factoryUid ?? "",
        environmentUid: typeof environmentUid === "string" ? environmentUid : "",
        repositories,
      };
    },
  };
}
