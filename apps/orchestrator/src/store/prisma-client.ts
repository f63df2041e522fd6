import { PrismaPg } from "@prisma/adapter-pg";
import type { Database } from "@millwright/database";
import { PrismaClient } from "../gen/prisma/client.ts";

/** The generated client on the service's own pool: Prisma opens no connections beside it. */
export const openPrisma = (database: Database): PrismaClient => new PrismaClient({ adapter: new PrismaPg(database.pool) });

