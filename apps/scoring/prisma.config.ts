import { defineConfig } from "prisma/config";

/**
 * Configuration of the Prisma command line only. The running service applies migrations with the migration runner of
 * libs/database.
 */
export default defineConfig({
  schema: "prisma/schema.prisma",
  migrations: { path: "prisma/migrations" },
  datasource: { url: process.env["DATABASE_URL"] ?? "postgresql://unused" },
});
