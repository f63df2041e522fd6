import { EXIT, UsageError, type Command } from "../command.ts";

/** Checks of an installation from where it runs. */
export const doctorCommand: Command = {
  words: "doctor",
  args: [],
  ignoresTeam: true,
  summary:
    "Check what this environment of a service or worker names: other services, database, clock, NATS, files, sandbox; exit code 1 if a check fails.",
  run: async (cli) => {
    const { describeFindings, isFailed, preflight, PREFLIGHT_VARIABLES } = await import("@millwright/preflight"); // only this command needs it
    const findings = await preflight(cli.env);
    if (findings.length === 0) throw new UsageError(`Set ${PREFLIGHT_VARIABLES.join(", ")}, or some of them.`);
    cli.show(findings, () => describeFindings(findings));
    return findings.some(isFailed) ? EXIT.failed : EXIT.done;
  },
};
