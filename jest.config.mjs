// Every suite under fire is `npm run fire`; these few are in every run.
const UNDER_FIRE = process.env["MILLWRIGHT_FIRE"] === "1" ? [] : ["/under-fire/(?!tree|factory|nats-factory)"];

export default {
  testEnvironment: "node",
  testMatch: ["<rootDir>/{apps,libs,tools}/*/{src,test}/**/*.test.ts", "<rootDir>/tools/**/*.test.ts"],
  testPathIgnorePatterns: ["/node_modules/", "/dist/", ...UNDER_FIRE],
  modulePathIgnorePatterns: ["/dist/", "<rootDir>/.nx/"],
  extensionsToTreatAsEsm: [".ts"],
  testEnvironmentOptions: { customExportConditions: ["@millwright/source", "node", "node-addons"] },
  transform: { "\\.ts$": "<rootDir>/tools/jest/strip.mjs" },
  testSequencer: "<rootDir>/tools/jest/sequencer.mjs",
  globalSetup: "<rootDir>/tools/jest/global-setup.mjs",
  globalTeardown: "<rootDir>/tools/jest/global-teardown.mjs",
  reporters: ["default", "<rootDir>/tools/jest/closing-line.mjs"],
  maxWorkers: 2,
  // Bounds hanging, not speed: tests wait for what happens, and give up by themselves.
  testTimeout: 300_000 * Number(process.env.MILLWRIGHT_PATIENCE ?? 1),
};
