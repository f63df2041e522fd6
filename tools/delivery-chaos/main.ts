// npm run delivery-chaos: sends deliveries to webhooks while the processes that accept, evaluate and dispatch them are killed.
//
//   npm run delivery-chaos -- [--identities 1000] [--deliveries 30000] [--seed 1]
//
// Exit code 1 if a guarantee was violated.
import { parseArgs } from "node:util";
import { deliveryChaos } from "@millwright/test-platform";
import { printRows, printLine } from "../drill/table.ts";

const number = (otherwise: string) => ({ type: "string", default: otherwise }) as const;
const { values } = parseArgs({
  options: { identities: number("1000"), deliveries: number("30000"), seed: number("1") },
});

const began = Date.now();
const { copies, deliveries, faults, violations } = await deliveryChaos({
  seed: Number(values.seed),
  identities: Number(values.identities),
  deliveries: Number(values.deliveries),
  stallTimeoutMs: 300_000,
  onProgress: (what) => printLine(`${Math.round((Date.now() - began) / 1_000)} s: ${what}`),
});
printRows([
  ["identities, 48 copies of each at once", Number(values.identities)],
  ["  copies with a response", copies.answered],
  ["  copies without a response", copies.unanswered],
  ["deliveries accepted", deliveries],
  ["seconds", Math.round((Date.now() - began) / 1_000)],
  ...Object.entries(faults).toSorted(([a], [b]) => a.localeCompare(b)),
  ["guarantees violated", violations.length],
]);
for (const violation of violations.slice(0, 50)) printLine(`VIOLATED  ${violation}`);
process.exitCode = violations.length > 0 ? 1 : 0;
