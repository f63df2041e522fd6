import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import {
  withExactNumbers,
  evaluateFilter,
  exactNumber,
  FILTER_LIMITS,
  isJson,
  parseExactly,
  parseFilter,
  parsePayload,
  parseStored,
  parseStoredFilter,
} from "./index.ts";

const bytes = (text: string) => Buffer.from(text, "utf8");
function verdict(filter: unknown, body: string) {
  const parsed = parseFilter(filter);
  if (!parsed.filter) throw new Error(JSON.stringify(parsed.faults));
  return evaluateFilter(parsed.filter, parsePayload(bytes(body))!);
}
const faultsOf = (filter: unknown) => (parseFilter(filter).faults ?? []).map(({ path }) => path);

const BODY = `{"event":"build.finished","attempt":2,"env":null,"tags":["nightly","arm"],
 "repo":{"name":"core","private":false},
 "jobs":[{"name":"lint","result":"ok"},{"name":"unit","result":"failed"}],"matrix":[]}`;

test.each<[unknown, boolean]>([
  [{ event: ["build.finished", "build.started"] }, true],
  [{ event: ["Build.Finished"] }, false],
  [{ event: [" build.finished"] }, false],
  [{ attempt: [2.0] }, true],
  [{ attempt: ["2"] }, false],
  [{ env: [null] }, true],
  [{ env: { exists: true } }, true],
  [{ region: [null] }, false],
  [{ region: { not_in: ["eu"] } }, true],
  [{ region: ["eu"] }, false],
  [{ region: { exists: true, not_in: ["eu"] } }, false],
  [{ region: { exists: false } }, true],
  [{ region: { exists: false, not_in: ["eu"] } }, true],
  [{ tags: ["arm", "x86"] }, true],
  [{ tags: { not_in: ["nightly"] } }, false],
  [{ jobs: { name: ["unit"], result: ["failed"] } }, true],
  [{ jobs: { name: ["lint"], result: ["failed"] } }, false],
  [{ jobs: { result: { not_in: ["failed"] } } }, true],
  [{ matrix: ["a"] }, false],
  [{ matrix: { not_in: ["a"] } }, true],
  [{ matrix: { os: { not_in: ["mac"] } } }, false],
  [{ repo: { private: [false], fork: { exists: false } } }, true],
  [{ repo: { private: [0] } }, false],
  [{ owner: { login: { not_in: ["bot"] } } }, false],
  [{ owner: { login: { exists: false } } }, false],
  [{ repo: ["core"] }, false],
  [{ repo: { not_in: ["core"] } }, true],
  [{ repo: { exists: true } }, true],
  [{ event: { login: ["x"] } }, false],
  [{ event: { in: [], not_in: [] } }, true],
  [{ absent: [] }, true],
  [{ repo: {} }, true],
  [{ event: {} }, false],
  [{ event: ["build.finished"], attempt: [3] }, false],
  [{}, true],
  [undefined, true],
])("%j in the worked example: %s", (filter, matches) => expect(verdict(filter, BODY).matches).toBe(matches));

test.each<[string, unknown, boolean]>([
  ['[{"k":0},{"k":1}]', { k: [1] }, true],
  ["[]", { k: [1] }, false],
  ["[]", {}, true],
  ["1", {}, true],
  ["1", { k: { exists: false } }, false],
  ['"k"', { k: { exists: false } }, false],
  ['{"k":1,"k":2}', { k: [2] }, true],
  ['{"k":1,"k":2}', { k: [1] }, false],
  ['{"n":0.1}', { n: [0.1] }, true],
  ['{"n":1.0}', { n: [1] }, true],
  ['{"n":10e-1}', { n: [1] }, true],
  ['{"n":-0}', { n: [0] }, true],
  ['{"n":0.10000000000000000000001}', { n: [0.1] }, false],
  ['{"n":12345678.12345678}', { n: [12345678.12345678] }, true],
  ['{"n":12345678.123456781}', { n: [12345678.12345678] }, false],
  ['{"n":9007199254740993}', { n: [9007199254740991] }, false],
  ['{"n":1e400}', { n: [1] }, false],
  ['{"n":1e-400}', { n: [0] }, false],
  ['{"n":1e99999999999999999999}', { n: [1] }, false],
  ['{"n":true}', { n: [1] }, false],
  ['{"__proto__":{"a":1}}', JSON.parse('{"__proto__":{"a":[1]}}'), true],
  ["{}", JSON.parse('{"__proto__":{"exists":true}}'), false],
  ["{}", { constructor: { exists: true } }, false],
  ['{"a":[[1]]}', { a: [1] }, false],
  ['{"a":[{"b":1}]}', { a: [1] }, false],
])("the body %s and the filter %j: %s", (body, filter, matches) => expect(verdict(filter, body).matches).toBe(matches));

const NUMBERS = [
  "1e400",
  "2.0000000000000001",
  "9007199254740993",
  "-9007199254740993.5",
  "1e-400",
  "0.1",
  "1",
  "0.10000000000000000000001",
  "12345678901234567890",
  "1E5",
];

test("a filter's numbers stay exact however it is parsed, stored and written", () => {
  const text = `{"a":{"b":[${NUMBERS.join(",")},"1e400",null]},"c":{"not_in":[1e400]}}`;
  const stored = JSON.parse(JSON.stringify(parseStored(text))) as unknown; // as stored by protobuf's Struct and jsonb
  expect(JSON.stringify(withExactNumbers(stored))).toBe(JSON.stringify(parseExactly(text)));
  expect(JSON.stringify(parseExactly(text))).toBe(text.replace("1E5", "100000"));
  expect(parseStoredFilter(stored)).toEqual(parseFilter(parseExactly(text)));
  for (const filter of [parseExactly(text), withExactNumbers(stored)]) {
    for (const number of NUMBERS)
      expect([number, verdict(filter, `{"a":{"b":${number}}}`).failedPaths]).toEqual([number, []]);
    for (const other of ["1e401", "2", "9007199254740992", "1e-401", "0.10000000000000000000002"])
      expect([other, verdict(filter, `{"a":{"b":${other}}}`).failedPaths]).toEqual([other, ["a.b"]]);
    expect(verdict(filter, '{"a":{"b":1},"c":1e400}').failedPaths).toEqual(["c"]);
  }
});

test("equal numbers with different spelling are one value of a set", () => {
  expect(faultsOf(parseExactly('{"a":{"in":[1e400],"not_in":[10e399]}}'))).toEqual(["a"]);
  expect(verdict(parseExactly('{"a":[1e400]}'), '{"a":10.0e399}').matches).toBe(true);
});

test.each<[string, unknown, string[]]>([
  ["a bare number that is no float", '{"a":1e400}', ["a"]],
  ["an object that is no number", '{"a":[{"$decimal":"x"}]}', ["a.0"]],
  ["a number with something beside it", '{"a":[{"$decimal":"1","b":1}]}', ["a.0"]],
])("%s in a set is rejected", (_what, text, paths) => expect(faultsOf(parseExactly(text as string))).toEqual(paths));

test("an object in the form of a stored number is rejected, and is no number after it is stored", () => {
  const text = '{"a":[{"$decimal":"5"}],"b":{"in":[{"$decimal":"1e400"}]}}';
  expect(faultsOf(parseExactly(text))).toEqual(["a.0", "b.in.0"]);
  expect(parseStoredFilter(parseStored(text)).faults).toEqual(parseFilter(parseExactly(text)).faults);
});

test("a field may have the name of a stored number's key", () => {
  const text = '{"$decimal":["5"],"a":{"$decimal":{"in":["5"]}}}';
  expect(withExactNumbers(parseStored(text))).toEqual(JSON.parse(text));
  expect(faultsOf(parseExactly(text))).toEqual([]);
});

test.each([
  [5, "5"],
  [{ $decimal: "9007199254740992" }, "9007199254740992"],
  [{ $decimal: "12345678901234567890" }, "12345678901234567890"],
  [0.5, "0.50"],
])("%j is the stored form of %s", (stored, text) => {
  expect(parseStored(text)).toEqual(stored);
  expect(parseStored(JSON.stringify([exactNumber(text)]))).toEqual([stored]);
});

test("failed paths name every field that does not match", () => {
  expect(
    verdict(
      { event: ["x"], repo: { name: ["core"], private: [true] }, owner: { login: ["a"] }, jobs: { name: ["none"] } },
      BODY,
    ),
  ).toEqual({
    matches: false,
    failedPaths: ["event", "repo.private", "owner", "jobs"],
  });
  expect(verdict({ event: ["build.finished"] }, BODY)).toEqual({ matches: true, failedPaths: [] });
});

test.each<[string, unknown, string[]]>([
  ["a list", [], [""]],
  ["a text", "x", [""]],
  ["an operator for the whole body", { exists: true }, [""]],
  ["a bare text instead of a list", { a: "x" }, ["a"]],
  ["a bare number", { a: 1 }, ["a"]],
  ["null", { a: null }, ["a"]],
  ["an operator beside a field", { a: { in: [1], b: [1] } }, ["a.b"]],
  ["a set that is none", { a: { in: "x", not_in: {} } }, ["a.in", "a.not_in"]],
  ["null sets", { a: { in: null } }, ["a.in"]],
  ["exists that is no boolean", { a: { exists: "true" } }, ["a.exists"]],
  ["an object or a list in a set", { a: [{}, [1]] }, ["a.0", "a.1"]],
  ["the same value in both sets", { a: { in: [1, "x"], not_in: [1.0] } }, ["a"]],
  ["a value of a field that must not exist", { a: { exists: false, in: ["x"] } }, ["a"]],
  ["a number that JSON readers round", { a: [2 ** 53] }, ["a.0"]],
  ["several faults at once", { a: "x", b: { c: 1 } }, ["a", "b.c"]],
])("%s is rejected at its path", (_what, filter, paths) => expect(faultsOf(filter)).toEqual(paths));

test("limits: the maximum is accepted, one more is not", () => {
  const deep = (levels: number): unknown => (levels === 0 ? [1] : { a: deep(levels - 1) });
  expect(faultsOf(deep(FILTER_LIMITS.depth))).toEqual([]);
  expect(faultsOf(deep(FILTER_LIMITS.depth + 1))).toEqual([Array(11).fill("a").join(".")]);
  const wide = (count: number) => Object.fromEntries(Array.from({ length: count }, (_one, n) => [`f${n}`, [n]]));
  expect(faultsOf(wide(FILTER_LIMITS.leaves))).toEqual([]);
  expect(faultsOf({ x: wide(FILTER_LIMITS.leaves + 1) })).toEqual(["x.f64"]);
  const many = (count: number) => Array.from({ length: count }, (_one, n) => n);
  expect(faultsOf({ a: { in: many(32), not_in: many(32).map((n) => n + 100) } })).toEqual([]);
  expect(faultsOf({ a: many(33), b: { not_in: many(33) } })).toEqual(["a", "b.not_in"]);
});

const LEAF = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.string({ maxLength: 3 }),
  fc.integer({ min: -3, max: 3 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

/** The rules of matching written as directly as possible, for filters whose numbers are floats. */
function model(pattern: any, value: any): boolean {
  if (Object.keys(pattern).length === 0 && value !== undefined) return true;
  const matches = (object: any): boolean =>
    object !== null &&
    typeof object === "object" &&
    !Array.isArray(object) &&
    Object.entries<any>(pattern).every(([name, node]) => {
      const has = Object.hasOwn(object, name);
      const operators = Array.isArray(node) ? { in: node } : node;
      const isLeaf = ["in", "not_in", "exists"].some((key) => key in operators);
      if (!isLeaf)
        return (
          has &&
          (Object.keys(node).length === 0
            ? typeof object[name] === "object" &&
              object[name] !== null &&
              (!Array.isArray(object[name]) ||
                object[name].some((one: any) => one !== null && typeof one === "object" && !Array.isArray(one)))
            : model(node, object[name]))
        );
      const members = has ? [object[name]].flat().filter((one) => one === null || typeof one !== "object") : [];
      const overlaps = (set: any[]) => set.some((one) => members.some((member) => member === one));
      return (
        (operators.exists ?? has) === has &&
        (!operators.in?.length || overlaps(operators.in)) &&
        !(operators.not_in ?? []).some((one: any) => members.includes(one === 0 ? 0 : one))
      );
    });
  return Array.isArray(value) ? value.some(matches) : matches(value);
}

test("evaluation equals the reference implementation for any filter and any body", () => {
  const name = fc.constantFrom("a", "b", "c");
  const scalar = fc.oneof(
    fc.constant(null),
    fc.boolean(),
    fc.constantFrom("", "x", "y"),
    fc.integer({ min: 0, max: 3 }),
  );
  const body = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      scalar,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(name, tie("value"), { maxKeys: 3 }),
    ),
  })).value;
  const set = fc.array(scalar, { maxLength: 2 });
  const operators = fc
    .record({ in: set, not_in: set, exists: fc.boolean() }, { requiredKeys: [] })
    .filter((one) => Object.keys(one).length > 0);
  const filter = fc.dictionary(
    name,
    fc.letrec((tie) => ({
      node: fc.oneof({ maxDepth: 3 }, set, operators, fc.dictionary(name, tie("node"), { maxKeys: 2 })),
    })).node,
    { maxKeys: 3 },
  );
  fc.assert(
    fc.property(filter, body, (given, value) => {
      fc.pre(parseFilter(given).filter !== undefined);
      expect(verdict(given, JSON.stringify(value)).matches).toBe(model(given, value));
    }),
    { numRuns: Number(process.env["MILLWRIGHT_FILTER_RUNS"] ?? 3_000) },
  );
});

test("a filter of a body's own scalars matches it, and a filter of other scalars does not", () => {
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.stringMatching(/^[a-z]{1,4}$/).filter((one) => one !== "in"),
        LEAF,
        { minKeys: 1, maxKeys: 5 },
      ),
      (fields) => {
        const filter = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, [value]]));
        const parsed = parseFilter(filter);
        fc.pre(parsed.filter !== undefined);
        expect(verdict(filter, JSON.stringify(fields))).toEqual({ matches: true, failedPaths: [] });
        const others = Object.fromEntries(Object.keys(fields).map((key) => [key, ["no such value"]]));
        expect(verdict(others, JSON.stringify(fields)).failedPaths).toEqual(Object.keys(fields));
      },
    ),
  );
});

test("parsing never throws for any filter and any body", () => {
  fc.assert(fc.property(fc.jsonValue(), (filter) => void parseFilter(filter)));
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (body) =>
      expect(isJson(body)).toBe(parsePayload(body) !== undefined),
    ),
  );
});

test.each([
  ["nothing", ""],
  ["a byte order mark", "\ufeff{}"],
  ["a trailing comma", "[1,]"],
  ["two values", "1 2"],
  ["NaN", "NaN"],
])("%s is not JSON", (_what, text) =>
  expect([isJson(bytes(text)), parsePayload(bytes(text))]).toEqual([false, undefined]),
);

test("invalid UTF-8 is not JSON; 131,072 levels are, and match only fields that they have", () => {
  expect(isJson(Buffer.from([0x22, 0xff, 0x22]))).toBe(false);
  const deep = `${"[".repeat(131_072)}${"]".repeat(131_072)}`;
  expect(isJson(bytes(deep))).toBe(true);
  expect(verdict({ a: [1] }, deep).matches).toBe(false);
});
