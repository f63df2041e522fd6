import { expect, test } from "@jest/globals";
import { parseClaimRoles, rolesOfClaim, valuesOfClaim } from "./claimed-roles.ts";

const MAPPING = parseClaimRoles(
  '{"admins": {"default": "owner", "QA": "viewer"}, "developers": {"default": "member", "QA": "admin"}, "*": {"Guests": "viewer"}}',
);

test.each([
  [[], { Guests: "viewer" }],
  [["unknown", "__proto__", "constructor"], { Guests: "viewer" }],
  [["developers"], { Guests: "viewer", default: "member", QA: "admin" }],
  [["developers", "admins"], { Guests: "viewer", default: "owner", QA: "admin" }],
])("the values %j give the highest role in each team", (values, roles) =>
  expect(Object.fromEntries(rolesOfClaim(MAPPING, values))).toEqual(roles),
);

test.each([
  ["groups", ["a", "b"]],
  ["realm_access.roles", ["c"]],
  ["https://mill.example/groups", ["d"]],
  ["department", ["e"]],
  ["absent", []],
  ["number", []],
  ["groups.length", []],
  ["constructor.name", []],
])("the claim %s has the values %j", (name, values) =>
  expect(
    valuesOfClaim(
      {
        groups: ["a", 1, "b", null],
        realm_access: { roles: ["c"] },
        "https://mill.example/groups": ["d"],
        department: "e",
        number: 1,
      },
      name,
    ),
  ).toEqual(values),
);

test.each([
  ["{", /JSON/],
  ["[]", /must have an object/],
  ['{"a": "owner"}', /must have an object/],
  ['{"a": {"default": "root"}}', /the role of "a" in "default" must be one of owner, admin, member, viewer/],
])("the mapping %s is refused", (text, message) => expect(() => parseClaimRoles(text)).toThrow(message));
