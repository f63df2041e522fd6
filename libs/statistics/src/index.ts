export { DEFAULT_CONFIDENCE, type Confidence, type Interval } from "./interval.ts";
export { mean } from "./mean.ts";
export { median } from "./median.ts";
export { isDistinguishable, pairedBootstrap, type PairedDifference } from "./paired-bootstrap.ts";
export { seededIndex, type RandomIndex } from "./random.ts";
export { wilson } from "./wilson.ts";
