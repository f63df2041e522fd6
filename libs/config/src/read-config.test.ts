import { expect, test } from "@jest/globals";
import { optional, parseDuration, readConfig, required } from "./index.ts";
import { parseSize } from "./size.ts";

const shape = {
  databaseUrl: required.url("DATABASE_URL"),
  key: required.secret("MASTER_KEY"),
  offerTtlMs: optional.duration("OFFER_TTL", "15s"),
  port: optional.int("PORT", 0),
  open: optional.bool("OPEN", false),
  aliases: optional.list("ALIASES", ["a", "b"]),
  natsUrl: optional.url("NATS_URL"),
  upstreams: required.urls("NEIGHBOUR_URL"),
};

test("values are parsed by their kind, with fallbacks for absent or empty ones", () => {
  expect(
    readConfig(
      {
        DATABASE_URL: "postgres://h/db/",
        MASTER_KEY: "k",
        OFFER_TTL: "2m",
        PORT: "",
        OPEN: "TRUE",
        ALIASES: " x, ,y",
        NEIGHBOUR_URL: "http://a:1/, http://b:2",
      },
      shape,
    ),
  ).toEqual({
    databaseUrl: "postgres://h/db",
    key: "k",
    offerTtlMs: 120_000,
    port: 0,
    open: true,
    aliases: ["x", "y"],
    natsUrl: undefined,
    upstreams: ["http://a:1", "http://b:2"],
  });
  expect(
    readConfig({ DATABASE_URL: "postgres://h/db", MASTER_KEY: "k", NEIGHBOUR_URL: "http://a" }, shape),
  ).toMatchObject({ offerTtlMs: 15_000, aliases: ["a", "b"] });
});

test("all faults are reported at once, naming variables and never their values", () => {
  const read = () =>
    readConfig(
      {
        DATABASE_URL: "hunter2",
        OFFER_TTL: "soon-hunter2",
        PORT: "1.5",
        OPEN: "maybe",
        NEIGHBOUR_URL: "http://a,hunter2",
      },
      shape,
    );
  expect(read).toThrow(
    /DATABASE_URL must be[^]*MASTER_KEY is required[^]*OFFER_TTL must be[^]*PORT must be[^]*OPEN must be[^]*NEIGHBOUR_URL must be/,
  );
  expect(read).not.toThrow(/hunter2|1\.5|maybe/);
});

test.each(["-1", "1.5", "1e3", "0x10", "9007199254740993"])("%j is not a whole number", (text) =>
  expect(() => readConfig({ N: text }, { n: optional.int("N", 1) })).toThrow("N must be a whole number from 0"),
);

test("the configuration is immutable", () => {
  const config = readConfig({}, { list: optional.list("L", ["a"]) });
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
