// Starts long suites first, so that the Jest workers finish at about the same time, and optional ones last. A clean
// clone has no durations of an earlier run, and Jest would sort by file size.
import TestSequencer from "@jest/test-sequencer";
import { rankOf, suiteOf } from "./suites.ts";

export default class RankedSuites extends TestSequencer {
  sort(tests) {
    const rank = ({ path, context }) => rankOf(suiteOf(context.config, path));
    return super.sort(tests).toSorted((a, b) => rank(a) - rank(b));
  }
}
