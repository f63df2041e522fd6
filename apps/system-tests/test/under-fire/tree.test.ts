import { underFire } from "../support/under-fire.ts";

await underFire("processes-under-fire", () => import("../tree.test.ts"));
