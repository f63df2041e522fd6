/** What belongs to a team, as far as conditions of several services need it. */
export type TeamScope = {
  readonly team: string;
  readonly factories: readonly string[];
  readonly agents: readonly string[];
  readonly members: readonly string[];
  /** Members whose accounts are in no other team and administer nothing. Their personal resources are erased with the team. */
  readonly users: readonly string[];
};

/** A condition on the rows of a table, as SQL. Uids were read from uuid columns or checked, so they are literals. */
export type RowsOf = (scope: TeamScope) => string;

export const uuids = (values: readonly string[]): string => `'{${values.join(",")}}'::uuid[]`;

export const ofTeam: RowsOf = ({ team }) => `team_uid = '${team}'`;
export const ofFactories: RowsOf = ({ factories }) => `factory_uid = ANY (${uuids(factories)})`;
/** Rows that a team or a person owns. */
export const ofOwner: RowsOf = ({ team, users }) =>
  `(owner_type = 'team' AND owner_uid = '${team}' OR owner_type = 'user' AND owner_uid = ANY (${uuids(users)}))`;
/**
 * Responses to requests of the team's agents and members, which contain what was created. They would expire within a
 * day; without them, a request that a member repeats is executed again.
 */
export const ofPrincipals: RowsOf = ({ agents, members }) =>
  `principal_uid ~ ANY ('{${[...agents, ...members].join(",")}}'::text[])`;

/** Returns the rows whose `column` is in a query of another table. */
export const through =
  (column: string, query: (scope: TeamScope) => string): RowsOf =>
  (scope) =>
    `${column} IN (${query(scope)})`;
