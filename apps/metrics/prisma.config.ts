import { defineConfig } from "prisma/config";

/** Read by the Prisma command line only; the running service applies migrations with our own runner (libs/database). */
export default defineConfig({
  schema: "prisma/schema.prisma",
  migrations: { path: "prisma/migrations" },
  datasource: { url: process.env["DATABASE_URL"] ?? "postgresql://unused" },
});
