import type { Transport } from "@connectrpc/connect";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import type { Consumer } from "@millwright/events";
import type { CallerSigner } from "@millwright/rpc";
import type { Logger } from "@millwright/telemetry";

export type IngestionOptions = {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signer: CallerSigner;
  readonly neighbours: { readonly orchestrator: Transport };
  readonly timeScale: number;
};

/** How facts of runs come in: events mark runs, the refresher reads them. */
export function composeIngestion(_options: IngestionOptions) {
  return {
    consumers: [] as Consumer[],
    /** Reads what is due until nothing is. For tests; `start` has it repeated. */
    refreshDue: async (): Promise<void> => {},
    start(): void {},
    async stop(): Promise<void> {},
  };
}
