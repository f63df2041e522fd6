export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/{apps,libs,tools}/*/{src,test}/**/*.test.ts', '<rootDir>/tools/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['/dist/', '<rootDir>/.nx/'],
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironmentOptions: { customExportConditions: ['@millwright/source', 'node', 'node-addons'] },
  transform: { '\\.ts$': '<rootDir>/tools/jest/strip.mjs' },
  globalSetup: '<rootDir>/tools/jest/global-setup.mjs',
  globalTeardown: '<rootDir>/tools/jest/global-teardown.mjs',
  reporters: ['default', '<rootDir>/tools/jest/closing-line.mjs'],
  maxWorkers: 2,
  testTimeout: 120_000,
};
