import { expect, test } from "@jest/globals";
import { describeSettings, optional, parseDuration, readConfig, required } from "./index.ts";
import { parseSize } from "./size.ts";

const shape = {
  databaseUrl: required.url("DATABASE_URL", "The database."),
  key: required.secret("MASTER_KEY", "The key."),
  offerTtlMs: optional.duration("OFFER_TTL", "How long.", { default: "15s", max: "1h" }),
  port: optional.int("PORT", "The port.", { default: 0, max: 65_535 }),
  open: optional.bool("OPEN", "Whether.", { default: false }),
  aliases: optional.list("ALIASES", "Names.", { default: ["a", "b"] }),
  group: {
    natsUrl: optional.url("NATS_URL", "NATS."),
    upstreams: required.urls("UPSTREAM_URL", "Addresses."),
    level: optional.oneOf("LEVEL", "The level.", { values: ["low", "high"], default: "low" }),
    labels: optional.pairs("LABELS", "Labels.", { default: "" }),
  },
};

test("values are parsed by their kind, with defaults for absent or empty ones", () => {
  const env = {
    DATABASE_URL: "postgres://h/db/",
    MASTER_KEY: "k",
    OFFER_TTL: "2m",
    PORT: "",
    OPEN: "TRUE",
    ALIASES: " x, ,y",
    UPSTREAM_URL: "http://a:1/, http://b:2",
    LEVEL: "high",
    LABELS: "a=b, c=d=e",
  };
  expect(readConfig(env, shape)).toEqual({
    databaseUrl: "postgres://h/db",
    key: "k",
    offerTtlMs: 120_000,
    port: 0,
    open: true,
    aliases: ["x", "y"],
    group: {
      natsUrl: undefined,
      upstreams: ["http://a:1", "http://b:2"],
      level: "high",
      labels: { a: "b", c: "d=e" },
    },
  });
  expect(
    readConfig({ DATABASE_URL: "postgres://h/db", MASTER_KEY: "k", UPSTREAM_URL: "http://a" }, shape),
  ).toMatchObject({ offerTtlMs: 15_000, aliases: ["a", "b"], group: { level: "low", labels: {} } });
});

test("all problems are reported at once, with the value and what is allowed", () => {
  const env = {
    DATABASE_URL: "db",
    OFFER_TTL: "2h",
    PORT: "65536",
    OPEN: "x".repeat(1_000),
    UPSTREAM_URL: "http://a,//user:hunter2@b",
    LEVEL: "middle",
    LABELS: "a",
  };
  let message = "";
  try {
    readConfig(env, shape);
  } catch (error) {
    ({ message } = error as Error);
  }
  expect(message.split("\n")).toEqual([
    "Invalid configuration:",
    '  DATABASE_URL must be an absolute URL (got "db").',
    "  MASTER_KEY is required: text.",
    '  OFFER_TTL must be a duration such as "15s" of at most 1h (got "2h").',
    '  PORT must be a whole number from 0 to 65535 (got "65536").',
    `  OPEN must be true or false (got "${"x".repeat(100)}…").`,
    "  UPSTREAM_URL must be comma-separated absolute URLs (got a value that may be secret).",
    '  LEVEL must be "low" or "high" (got "middle").',
    '  LABELS must be a comma-separated list of name=value (got "a").',
  ]);
});

test("a custom parser's message is shown, the value of a secret is not", () => {
  const key = required.custom("KEY", "A key.", {
    allowed: "a long key",
    secret: true,
    parse(text) {
      throw new Error(`it has ${text.length} characters`);
    },
  });
  expect(() => readConfig({ KEY: "hunter2" }, { key })).toThrow(
    "KEY must be a long key (got a value that may be secret): it has 7 characters.",
  );
});

test("rules over several settings are checked if those settings are valid, and reported with the other problems", () => {
  const settings = {
    min: optional.int("MIN", "Minimum.", { default: 1 }),
    max: optional.int("MAX", "Maximum.", { default: 2 }),
    port: optional.int("PORT", "Port.", { default: 0 }),
  };
  const read = (env: Record<string, string>) => () =>
    readConfig(env, settings, [
      {
        variables: ["MIN", "MAX"],
        check({ min, max }) {
          if (min > max) throw new Error("MIN must be at most MAX.");
        },
      },
    ]);
  expect(read({})()).toEqual({ min: 1, max: 2, port: 0 });
  expect(read({ MIN: "3", PORT: "x" })).toThrow(/PORT must be[^]*MIN must be at most MAX/);
  expect(read({ MIN: "3", MAX: "x" })).not.toThrow(/at most MAX/);
});

test("settings are described for documentation, groups included", () => {
  expect(describeSettings(shape).map(({ name }) => name)).toEqual([
    "DATABASE_URL",
    "MASTER_KEY",
    "OFFER_TTL",
    "PORT",
    "OPEN",
    "ALIASES",
    "NATS_URL",
    "UPSTREAM_URL",
    "LEVEL",
    "LABELS",
  ]);
  expect(describeSettings(shape).slice(1, 3)).toEqual([
    {
      name: "MASTER_KEY",
      description: "The key.",
      allowed: "text",
      isRequired: true,
      isSecret: true,
      default: undefined,
    },
    {
      name: "OFFER_TTL",
      description: "How long.",
      allowed: 'a duration such as "15s" of at most 1h',
      isRequired: false,
      isSecret: false,
      default: "15s",
    },
  ]);
});

test.each(["-1", "1.5", "1e3", "0x10", "9007199254740993", "6"])("%j is not a whole number up to 5", (text) =>
  expect(() => readConfig({ N: text }, { n: optional.int("N", "A number.", { default: 1, max: 5 }) })).toThrow(
    "N must be a whole number from 0 to 5",
  ),
);

test("a fraction is a number from 0 to 1", () => {
  const read = (text: string) => readConfig({ N: text }, { n: optional.fraction("N", "A fraction.") }).n;
  expect(["0", "0.25", "1"].map(read)).toEqual([0, 0.25, 1]);
  for (const text of ["1.1", "-0.5", "half"]) expect(() => read(text)).toThrow("N must be a number from 0 to 1");
});

test("the configuration is immutable", () => {
  const config = readConfig({}, { list: optional.list("L", "A list.", { default: ["a"] }) });
  expect(() => Object.assign(config, { list: [] })).toThrow(TypeError);
  expect(() => config.list.push("b")).toThrow(TypeError);
});

test.each([
  ["250ms", 250],
  ["15s", 15_000],
  ["1.5m", 90_000],
  ["24h", 86_400_000],
  ["7d", 604_800_000],
  ["15", undefined],
  ["-5s", undefined],
  ["5 s", undefined],
  ["s", undefined],
])("the duration %j is %s ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

test.each([
  ["1048576", 1_048_576],
  ["512M", 536_870_912],
  ["1.5GiB", 1_610_612_736],
  ["4 GB", 4_294_967_296],
  ["4X", undefined],
  ["-1G", undefined],
  ["9999999999T", undefined],
])("the size %j is %s bytes", (text, bytes) => expect(parseSize(text)).toBe(bytes));
