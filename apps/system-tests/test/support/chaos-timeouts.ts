import { timeoutFactor } from "@millwright/testing";

/** Operations take longer, because they wait until a killed process is back. */
process.env["MILLWRIGHT_TEST_TIMEOUT_FACTOR"] = String(3 * timeoutFactor());
