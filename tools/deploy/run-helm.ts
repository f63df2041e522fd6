// npm run helm -- [3|4] <arguments of helm>: runs the pinned Helm that the tests of the chart use.
import { spawnSync } from "node:child_process";
import { fetchHelm, HELM_MAJORS } from "./helm.ts";

const [first = "", ...rest] = process.argv.slice(2);
const major = HELM_MAJORS.find((one) => String(one) === first);
const { helm } = fetchHelm(major ?? 4);
const { status } = spawnSync(helm, major === undefined ? process.argv.slice(2) : rest, { stdio: "inherit" });
process.exit(status ?? 1);
