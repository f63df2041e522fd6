import { underFire } from "../support/under-fire.ts";

await underFire("services-under-fire", () => import("../budgets.test.ts"));
