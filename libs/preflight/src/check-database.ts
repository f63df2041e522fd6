import { Client } from "pg";
import { addressOf, findingsAt, messageOf, type Finding } from "./finding.ts";

/** The oldest major release of PostgreSQL that the migrations need. */
const MAJOR_MIN = 15;

/** Leases compare the clocks of processes with the database's, and signed callers are valid with 5 s of tolerance. */
const CLOCK_SKEW_MS_MAX = 5_000;

const TIMEOUT_MS = 5_000;

export type DatabaseNeeds = {
  /** Extensions that migrations create. */
  readonly extensions?: readonly string[];
  /** Number of connections that one process opens. */
  readonly connections?: number;
  /** Whether the role creates databases, as the standalone platform does. */
  readonly createsDatabases?: boolean;
  /** Whether a database that does not exist is no problem, because it will be created: nothing is found then. */
  readonly mayBeAbsent?: boolean;
};

/**
 * Checks connection, version, encoding, rights, extensions, migrations, free connections, and this machine's clock
 * against the database's. Never rejects.
 */
export async function checkDatabase(
  url: string,
  { extensions = [], connections = 1, createsDatabases = false, mayBeAbsent = false }: DatabaseNeeds = {},
): Promise<Finding[]> {
  const finding = findingsAt(addressOf(url));
  if (!URL.canParse(url))
    return [finding("database", "it is not an absolute URL", "Set postgres://user:password@host:5432/database.")];
  const db = new Client({
    connectionString: url,
    application_name: "doctor",
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  });
  db.on("error", () => {}); // the running statement reports it
  try {
    await db.connect();
  } catch (error) {
    const { code = "" } = error as { code?: string };
    if (mayBeAbsent && code === DATABASE_IS_ABSENT) return [];
    return [finding("database", messageOf(error), REMEDIES[code] ?? REACHABLE)];
  }
  try {
    const facts = await readFacts(db, extensions);
    return [
      finding("database", problemOfServer(facts), "Use a primary server of a supported release, with encoding UTF8."),
      finding(
        "database rights",
        createsDatabases ? problemOfCreation(facts) : problemOfRights(facts),
        createsDatabases
          ? `As a superuser: ALTER ROLE ${facts.role} CREATEDB;`
          : `As a superuser: ALTER DATABASE ${facts.database} OWNER TO ${facts.role}; tables of another owner: ALTER TABLE … OWNER TO ${facts.role};`,
      ),
      finding(
        "database extensions",
        facts.missing.length === 0 ? null : `the server does not offer ${facts.missing.join(", ")}`,
        "Install the package postgresql-contrib of the server's release.",
      ),
      finding(
        "database migrations",
        facts.failed.length === 0 ? null : `migration ${facts.failed.join(", ")} failed`,
        "Read the column logs of _prisma_migrations, fix the cause, delete the row, and start the service again.",
      ),
      finding(
        "database connections",
        facts.free >= connections ? null : `${facts.free} connections are free, and a process opens ${connections}`,
        "Raise max_connections of the server, or lower DATABASE_POOL.",
      ),
      finding(
        "clock",
        Math.abs(facts.skewMs) <= CLOCK_SKEW_MS_MAX
          ? null
          : `this machine's clock is ${(Math.abs(facts.skewMs) / 1000).toFixed(1)} s ${facts.skewMs > 0 ? "ahead of" : "behind"} the database's (at most ${CLOCK_SKEW_MS_MAX / 1000} s)`,
        "Synchronise the clocks of both machines with NTP.",
      ),
    ];
  } catch (error) {
    return [finding("database", messageOf(error), "Read the log of the server.")];
  } finally {
    await db.end().catch(() => {});
  }
}

const REACHABLE = "Start the server, and check host, port and firewall.";

const DATABASE_IS_ABSENT = "3D000";

/** What to do about errors of a connection, by SQLSTATE. */
const REMEDIES: Readonly<Record<string, string>> = {
  "28P01": "Set the user's password in the URL.",
  "28000": "Allow the user in pg_hba.conf, or set another one in the URL.",
  [DATABASE_IS_ABSENT]: "Create the database: CREATE DATABASE name OWNER user.",
  "53300": "Raise max_connections of the server, or lower DATABASE_POOL of the services.",
};

type Facts = {
  readonly database: string;
  readonly role: string;
  readonly version: number;
  readonly encoding: string;
  readonly isReadOnly: boolean;
  readonly canCreate: boolean;
  readonly canCreateDatabases: boolean;
  readonly foreignTables: readonly string[];
  readonly missing: readonly string[];
  readonly failed: readonly string[];
  readonly free: number;
  readonly skewMs: number;
};

async function readFacts(db: Client, extensions: readonly string[]): Promise<Facts> {
  const { rows } = await db.query<Omit<Facts, "skewMs" | "failed"> & { hasLedger: boolean }>(
    `SELECT current_database() AS database,
            current_user::text AS role,
            current_setting('server_version_num')::int AS version,
            current_setting('server_encoding') AS encoding,
            pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "isReadOnly",
            has_database_privilege(current_database(), 'CREATE')
              AND coalesce(has_schema_privilege(to_regnamespace('public'), 'CREATE'), false) AS "canCreate",
            (SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user) AS "canCreateDatabases",
            ARRAY(SELECT tablename::text
                    FROM pg_tables
                   WHERE schemaname IN ('public', 'stream') AND NOT pg_has_role(tableowner, 'USAGE')
                   ORDER BY 1) AS "foreignTables",
            ARRAY(SELECT name
                    FROM unnest($1::text[]) AS needed (name)
                   WHERE name NOT IN (SELECT name::text FROM pg_available_extensions)) AS missing,
            current_setting('max_connections')::int
              - current_setting('superuser_reserved_connections')::int
              - (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS free,
            to_regclass('_prisma_migrations') IS NOT NULL AS "hasLedger"`,
    [extensions],
  );
  const { hasLedger, ...facts } = rows[0]!;
  const failed = hasLedger
    ? await db.query<{ name: string }>(
        `SELECT migration_name AS name
           FROM _prisma_migrations
          WHERE finished_at IS NULL AND rolled_back_at IS NULL AND logs IS NOT NULL`,
      )
    : { rows: [] };
  return { ...facts, failed: failed.rows.map(({ name }) => name), skewMs: await readSkew(db) };
}

/** Returns how far this machine's clock is ahead of the server's, which is read in the middle of the statement. */
async function readSkew(db: Client): Promise<number> {
  const before = Date.now();
  const { rows } = await db.query<{ ms: number }>("SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms");
  return (before + Date.now()) / 2 - rows[0]!.ms;
}

function problemOfServer({ version, encoding, isReadOnly }: Facts): string | null {
  const major = Math.floor(version / 10_000);
  if (major < MAJOR_MIN) return `the server is PostgreSQL ${major} (at least ${MAJOR_MIN})`;
  if (encoding !== "UTF8") return `the encoding of the database is ${encoding} (must be UTF8)`;
  return isReadOnly ? "the server is read-only: it is a standby, or default_transaction_read_only is on" : null;
}

const problemOfCreation = ({ role, canCreateDatabases }: Facts): string | null =>
  canCreateDatabases ? null : `${role} must not create databases, which the first start does`;

function problemOfRights({ role, canCreate, foreignTables }: Facts): string | null {
  if (!canCreate) return `${role} must not create schemas and tables, which migrations do`;
  return foreignTables.length === 0
    ? null
    : `${foreignTables.length} tables do not belong to ${role}, such as ${foreignTables[0]}; migrations alter them`;
}
