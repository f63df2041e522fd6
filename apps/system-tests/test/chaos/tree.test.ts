import { withChaos } from "../support/chaos.ts";

await withChaos("processes-chaos", () => import("../tree.test.ts"));
