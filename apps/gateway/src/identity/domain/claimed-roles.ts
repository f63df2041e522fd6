import { ROLES, type Role } from "./roles.ts";

/** The roles that a value of the claim gives, by uid or name of the team. "*" stands for every person. */
export type ClaimRoles = Readonly<Record<string, Readonly<Record<string, Role>>>>;

const EVERYONE = "*";

/**
 * Parses the mapping of claim values to roles: `{"developers": {"default": "member"}}`. Throws an Error with a fragment
 * that follows the name of the variable.
 */
export function parseClaimRoles(text: string): ClaimRoles {
  const mapping = objectOf(JSON.parse(text) as unknown);
  return Object.fromEntries(
    Object.entries(mapping).map(([value, teams]) => {
      for (const [team, role] of Object.entries(objectOf(teams)))
        if (!ROLES.includes(role as Role))
          throw new Error(`the role of "${value}" in "${team}" must be one of ${ROLES.join(", ")}`);
      return [value, teams as Record<string, Role>];
    }),
  );
}

/** Returns the highest role that the values of the claim give in each team, by uid or name of the team. */
export function rolesOfClaim(mapping: ClaimRoles, values: readonly string[]): ReadonlyMap<string, Role> {
  const roles = new Map<string, Role>();
  for (const value of [EVERYONE, ...values])
    for (const [team, role] of Object.entries(Object.hasOwn(mapping, value) ? mapping[value]! : {}))
      if (isHigher(role, roles.get(team))) roles.set(team, role);
  return roles;
}

/** Returns the texts of a claim: a text, a list of texts, or undefined. A dot in its name leads into an object. */
export function valuesOfClaim(claims: Readonly<Record<string, unknown>>, name: string): string[] {
  const direct = Object.hasOwn(claims, name) ? claims[name] : undefined;
  const value = direct ?? name.split(".").reduce<unknown>((at, key) => memberOf(at, key), claims);
  return (Array.isArray(value) ? value : [value]).filter((each) => typeof each === "string");
}

export const isHigher = (role: Role, other: Role | undefined): boolean =>
  other === undefined || ROLES.indexOf(role) < ROLES.indexOf(other);

const memberOf = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Error("each value of the claim must have an object with teams and roles");
}
