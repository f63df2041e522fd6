import type { Transport } from "@connectrpc/connect";
import { BackgroundLoop, type Database } from "@millwright/database";
import type { ServiceOptions } from "@millwright/service";
import { codeHostClient } from "./clients/code-host-client.ts";
import { countPolls } from "./store/poll-store.ts";
import { pullRequestFactStore } from "./store/pull-request-fact-store.ts";
import { pollCodeHosts, type PollCodeHostsDeps } from "./usecases/poll-code-hosts.ts";

export type ReconciliationOptions = Pick<ServiceOptions, "clock" | "log" | "metrics" | "signer"> & {
  readonly database: Database;
  readonly upstreams: { readonly orchestrator: Transport; readonly webhookIngress: Transport };
  readonly timeScale: number;
};

/** How often due reads are claimed. */
const CHECK_MS = 5_000;

/** Composes the polling of code hosts, which finds facts of pull requests that no delivery reported. */
export function composeReconciliation(o: ReconciliationOptions) {
  const { database, clock, log, metrics, signer, upstreams, timeScale } = o;
  const reads = metrics.counter(
    "millwright_code_host_reads_total",
    "Reads of code hosts that reconcile pull requests.",
    ["provider", "outcome"],
  );
  const due = metrics.scrapedGauge(
    "millwright_code_host_reads_due",
    "Repositories and pull requests that are due to be read.",
    ["kind"],
  );
  const paused = metrics.scrapedGauge("millwright_code_hosts_paused", "Connections whose rate limit is used up.", []);
  const deps: PollCodeHostsDeps = {
    ...{ database, clock, log, timeScale },
    codeHosts: codeHostClient(upstreams, signer),
    pullRequests: pullRequestFactStore(database),
    countRead: (provider, outcome) => reads.inc({ provider, outcome }),
  };
  const loop = new BackgroundLoop({
    everyMs: CHECK_MS / timeScale,
    step: async () => ((await pollCodeHosts(deps)) > 0 ? "again" : "idle"),
    onError: (error) => log.warn({ error }, "claiming due reads of code hosts failed; retrying"),
  });
  const close = metrics.onScrape("metrics reconciliation", async () => {
    const counts = await countPolls(database.sql, clock.now());
    due.set({ kind: "repository" }, counts.repositories);
    due.set({ kind: "pull_request" }, counts.pullRequests);
    paused.set({}, counts.paused);
  });
  return {
    /** Executes all due reads once. For tests; `start` repeats it. */
    async reconcileDue(): Promise<void> {
      while ((await pollCodeHosts(deps)) > 0);
    },
    start: (): void => loop.start(),
    stop: (): Promise<void> => loop.stop(),
    /** Stops reporting. */
    close,
  };
}
