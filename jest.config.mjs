// Suites against killed processes take minutes each: `npm run chaos` runs them.
const CHAOS = process.env["MILLWRIGHT_CHAOS"] === "1" ? [] : ["/test/chaos/"];

export default {
  testEnvironment: "node",
  testMatch: ["<rootDir>/{apps,libs,tools}/*/{src,test}/**/*.test.ts", "<rootDir>/tools/**/*.test.ts"],
  testPathIgnorePatterns: ["/node_modules/", "/dist/", ...CHAOS],
  modulePathIgnorePatterns: ["/dist/", "<rootDir>/.nx/"],
  extensionsToTreatAsEsm: [".ts"],
  testEnvironmentOptions: { customExportConditions: ["@millwright/source", "node", "node-addons"] },
  transform: { "\\.ts$": "<rootDir>/tools/jest/strip.mjs" },
  testSequencer: "<rootDir>/tools/jest/sequencer.mjs",
  testRunner: "<rootDir>/tools/jest/test-runner.ts",
  globalSetup: "<rootDir>/tools/jest/global-setup.mjs",
  globalTeardown: "<rootDir>/tools/jest/global-teardown.mjs",
  reporters: ["default", "<rootDir>/tools/jest/closing-line.ts"],
  maxWorkers: 2,
  // Bounds hanging, not speed: tests wait for what happens, and give up by themselves.
  testTimeout: 300_000 * Number(process.env.MILLWRIGHT_TEST_TIMEOUT_FACTOR ?? 1),
};
