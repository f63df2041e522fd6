export { checkBlobs } from "./check-blobs.ts";
export { describeFindings } from "./describe-findings.ts";
export { checkDatabase, type DatabaseNeeds } from "./check-database.ts";
export { checkNats } from "./check-nats.ts";
export { checkSandbox } from "./check-sandbox.ts";
export { checkServices } from "./check-services.ts";
export { isFailed, type Finding } from "./finding.ts";
export { checkFiles, preflight, PREFLIGHT_VARIABLES } from "./preflight.ts";
